/* SPDX-License-Identifier: Apache-2.0
   Loaded before the C library (LD_PRELOAD): a flush takes 4 ms, or as long as it takes if that is longer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

static const long FLUSH_NS = 4000000;

static int flush(const char *name, int file) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += FLUSH_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec += 1;
    }
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    int result = real(file);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, 0)) {
    }
    return result;
}

int fsync(int file) { return flush("fsync", file); }
int fdatasync(int file) { return flush("fdatasync", file); }
