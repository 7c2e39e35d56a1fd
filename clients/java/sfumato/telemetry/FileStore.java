// SPDX-License-Identifier: Apache-2.0
package sfumato.telemetry;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;

/**
 * A store in a file; one client at a time.
 *
 * <p>Each save writes another file, flushes it to disk, and then takes the place of the old one.
 * Keep the folder readable for the user of the device alone.
 */
public final class FileStore implements Store, Closeable {
  private final Path path;
  private final Path next;
  private final FileChannel lock;

  /**
   * Opens the store.
   *
   * @throws IOException if another client uses the file, or it cannot be written
   */
  public FileStore(Path path) throws IOException {
    this.path = path.toAbsolutePath();
    next = beside(".next");
    lock = FileChannel.open(
        beside(".lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
    if (!isLocked()) {
      lock.close();
      throw new IOException("Another client uses this store: two would answer twice.");
    }
  }

  private Path beside(String ending) {
    return path.resolveSibling(path.getFileName() + ending);
  }

  private boolean isLocked() throws IOException {
    try {
      FileLock found = lock.tryLock();
      return found != null;
    } catch (OverlappingFileLockException sameProcess) {
      return false;
    }
  }

  @Override
  public byte[] load() throws IOException {
    try {
      return Files.readAllBytes(path);
    } catch (NoSuchFileException none) {
      return null;
    }
  }

  @Override
  public void save(byte[] state) throws IOException {
    try (FileChannel file = FileChannel.open(
        next,
        StandardOpenOption.CREATE,
        StandardOpenOption.WRITE,
        StandardOpenOption.TRUNCATE_EXISTING)) {
      ByteBuffer left = ByteBuffer.wrap(state);
      while (left.hasRemaining()) {
        file.write(left);
      }
      file.force(true);
    }
    Files.move(next, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    flushFolder();
  }

  /** The new name is durable too, where the system lets a folder be opened (Windows does not). */
  private void flushFolder() throws IOException {
    if (System.getProperty("os.name").startsWith("Windows")) {
      return;
    }
    try (FileChannel folder = FileChannel.open(path.getParent(), StandardOpenOption.READ)) {
      folder.force(true);
    }
  }

  /** Lets another client use the file. */
  @Override
  public void close() throws IOException {
    lock.close();
  }
}
