package informixcdc;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.OptionalLong;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.classic.SparkSession;

/**
 * The batch of a checkpoint that is planned and not committed, as Spark's files have it.
 *
 * @param checkpoint of the query
 * @param isFirst whether no batch is committed
 * @param lines of the file with the offsets of all sources
 */
record PlannedBatch(Path checkpoint, boolean isFirst, List<String> lines) {

  /** Return it; null if all batches are committed. */
  static PlannedBatch in(Path checkpoint) throws IOException {
    FileSystem files =
        checkpoint.getFileSystem(SparkSession.active().sessionState().newHadoopConf());
    Path offsets = new Path(checkpoint, "offsets");
    OptionalLong planned = last(files, offsets);
    OptionalLong committed = last(files, new Path(checkpoint, "commits"));
    if (planned.isEmpty() || planned.getAsLong() <= committed.orElse(-1)) {
      return null;
    }
    Path path = new Path(offsets, Long.toString(planned.getAsLong()));
    try (FSDataInputStream file = files.open(path)) {
      String text = new String(file.readAllBytes(), StandardCharsets.UTF_8);
      return new PlannedBatch(checkpoint, committed.isEmpty(), text.lines().toList());
    }
  }

  private static OptionalLong last(FileSystem files, Path folder) throws IOException {
    if (!files.exists(folder)) {
      return OptionalLong.empty();
    }
    LongStream numbers =
        Stream.of(files.listStatus(folder))
            .map(file -> file.getPath().getName())
            .filter(name -> name.matches("[0-9]+"))
            .mapToLong(Long::parseLong);
    return numbers.max();
  }

  /** Return those of its offsets that record a data loss: none, or that of a source of ours. */
  List<String> losses() {
    return lines.stream()
        .filter(line -> line.contains("{") && line.contains("\"lost\""))
        .map(line -> line.substring(line.indexOf('{'))) // behind the source's name, if it has one
        .filter(OffsetText::isLost)
        .toList();
  }

  IllegalStateException refusal(String forgotten) {
    return new IllegalStateException(
        "informix-cdc: the checkpoint "
            + checkpoint
            + " has a planned batch that is not committed. In real-time mode Spark would delete it,"
            + " and with it "
            + forgotten
            + ": changes would be lost. Run the query once without trigger(realTime=...) until a"
            + " batch is committed, for example with trigger(availableNow=True).");
  }
}
