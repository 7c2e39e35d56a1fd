# SPDX-License-Identifier: Apache-2.0
# Prints the table of src/sfumato/ledger/scripts.py from the Unicode tables of this perl:
# of each character that UTS 39 allows in identifiers (Identifier_Status) its Script_Extensions.
use strict;
use warnings;
use Unicode::UCD qw(prop_invlist prop_invmap prop_value_aliases search_invlist);

my @allowed = prop_invlist("Identifier_Status=Allowed");
my ($starts, $values) = prop_invmap("Script_Extensions");
my %edges = map { $_ => 1 } @allowed, @$starts;
my @edges = sort { $a <=> $b } keys %edges;
my %ranges;
my ($before, $end) = ("", -1);
for my $k (0 .. $#edges - 1) {
    my ($first, $last) = ($edges[$k], $edges[$k + 1] - 1);
    next if (search_invlist(\@allowed, $first) // 1) % 2;
    my $value = $values->[search_invlist($starts, $first)];
    my $scripts = join " ", sort map { (prop_value_aliases("sc", $_))[0] } ref $value ? @$value : split / /, $value;
    if ($scripts eq $before && $first == $end + 1) { $ranges{$scripts}[-1][1] = $last }
    else { push @{$ranges{$scripts}}, [$first, $last] }
    ($before, $end) = ($scripts, $last);
}
print "# Unicode ", Unicode::UCD::UnicodeVersion(), "\n";
for my $scripts (sort keys %ranges) {
    my @texts = map { $_->[0] == $_->[1] ? sprintf("%X", $_->[0]) : sprintf("%X-%X", @$_) } @{$ranges{$scripts}};
    print "$scripts: @texts\n";
}
