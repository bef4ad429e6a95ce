package informixcdc.tests;

import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Instant;
import java.util.UUID;
import org.apache.spark.sql.ForeachWriter;
import org.apache.spark.sql.Row;

/** Writes each row as a line, at once: its batch, its values, and when it came, in nanoseconds. */
public final class LinesOf extends ForeachWriter<Row> {
  private final String folder;
  private final long pauseMicroseconds;
  private transient OutputStream file;
  private transient long batch;

  public LinesOf(String folder, long pauseMicroseconds) {
    this.folder = folder;
    this.pauseMicroseconds = pauseMicroseconds;
  }

  @Override
  public boolean open(long partition, long number) {
    batch = number;
    try {
      file = new FileOutputStream(Path.of(folder, number + "-" + UUID.randomUUID()).toFile());
    } catch (IOException reason) {
      throw new IllegalStateException(reason);
    }
    return true;
  }

  @Override
  public void process(Row row) {
    Instant now = Instant.now();
    long nanoseconds = now.getEpochSecond() * 1_000_000_000L + now.getNano();
    String line = batch + " " + row.mkString(" ") + " " + nanoseconds + "\n";
    try {
      file.write(line.getBytes(StandardCharsets.UTF_8));
    } catch (IOException reason) {
      throw new IllegalStateException(reason);
    }
    if (pauseMicroseconds > 0) {
      long until = System.nanoTime() + pauseMicroseconds * 1000;
      while (System.nanoTime() < until) {
        Thread.onSpinWait();
      }
    }
  }

  @Override
  public void close(Throwable reason) {
    try {
      file.close();
    } catch (IOException broken) {
      throw new IllegalStateException(broken);
    }
  }
}
