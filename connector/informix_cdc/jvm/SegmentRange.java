package informixcdc;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.channels.SeekableByteChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.zip.CRC32;
import org.apache.arrow.vector.util.ByteArrayReadableSeekableByteChannel;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingInputPartition;

/**
 * Changes `first` to `end` (exclusive) of a segment file; the rest says which file.
 *
 * <p>Rule: a partition is a pickled Python object that holds a text for this class, and nothing else
 * of it is looked at: a mark, the number of bytes, JSON. `connector/informix_cdc/spark/partitions.py`
 * writes it.
 *
 * @param content of the file, where it came with a message; null if the file is read
 */
record SegmentRange(
    Path path, long first, long end, long sizeBytes, long checksum, byte[] content) {
  private static final byte[] MARK = "informix-cdc ranges ".getBytes(StandardCharsets.US_ASCII);

  /** Of ranges that executors read in Python; the driver may have the files. */
  private static final byte[] MARK_OF_PYTHON =
      "informix-cdc rows ".getBytes(StandardCharsets.US_ASCII);

  private static final long MOST_SENT_BYTES = 1 << 20;
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int MOST_LENGTH_DIGITS = 9;
  private static final int PIECE_BYTES = 1 << 20;
  private static final int MOST_KNOWN = 1024;

  /** Sums that were made in this process: by file, its number, its size and its last change. */
  private static final Map<List<Object>, Long> KNOWN =
      new LinkedHashMap<>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<List<Object>, Long> eldest) {
          return size() > MOST_KNOWN;
        }
      };

  /** Tell whether a partition has files of segments at all. */
  static boolean areNamedIn(InputPartition partition) {
    return partition instanceof PythonStreamingInputPartition made
        && placeAfter(MARK, made.pickedPartition()) >= 0;
  }

  /** Return what a partition names, in the order of its rows. */
  static List<SegmentRange> of(InputPartition partition) throws IOException {
    return of(partition, null);
  }

  /** Return what a partition names, in the order of its rows, with the contents of the files. */
  static List<SegmentRange> of(InputPartition partition, byte[][] contents) throws IOException {
    List<SegmentRange> found = new ArrayList<>();
    byte[] pickled = ((PythonStreamingInputPartition) partition).pickedPartition();
    for (JsonNode one : JSON.readTree(textIn(pickled)).required("ranges")) {
      found.add(
          new SegmentRange(
              Path.of(one.required("path").textValue()),
              one.required("first").longValue(),
              one.required("end").longValue(),
              one.required("size_bytes").longValue(),
              one.required("checksum").longValue(),
              contents == null ? null : contents[found.size()]));
    }
    return found;
  }

  /** Return what a reader makes of the changes of a partition. */
  static ReaderForm formOf(InputPartition partition) throws IOException {
    byte[] pickled = ((PythonStreamingInputPartition) partition).pickedPartition();
    return ReaderForm.of(JSON.readTree(textIn(pickled)).required("form"));
  }

  /** Return the contents of a partition's files; null if they are many bytes, or not to be read here. */
  static byte[][] smallContents(InputPartition partition) {
    try {
      List<SegmentRange> ranges = of(partition);
      if (ranges.stream().mapToLong(SegmentRange::sizeBytes).sum() > MOST_SENT_BYTES) {
        return null;
      }
      byte[][] contents = new byte[ranges.size()][];
      for (int at = 0; at < contents.length; at++) {
        try (InputStream file = Channels.newInputStream(ranges.get(at).open())) {
          contents[at] = file.readAllBytes();
        }
      }
      return contents;
    } catch (IOException | RuntimeException elsewhere) {
      return null; // the executor looks in the other places, and says what is wrong
    }
  }

  private static String textIn(byte[] pickled) throws IOException {
    int at = Math.max(placeAfter(MARK, pickled), placeAfter(MARK_OF_PYTHON, pickled));
    if (at < 0) {
      throw new IOException("a partition has no ranges");
    }
    long length = 0;
    for (int last = at + MOST_LENGTH_DIGITS; at < last && at < pickled.length; at++) {
      if (pickled[at] == ' ') {
        return checkedText(pickled, at + 1, length);
      }
      length = 10 * length + Character.digit(pickled[at], 10);
    }
    throw new IOException("the ranges of a partition have no length");
  }

  private static String checkedText(byte[] pickled, int first, long length) throws IOException {
    if (length < 0 || length > pickled.length - first) {
      throw new IOException("the ranges of a partition are truncated");
    }
    return new String(pickled, first, (int) length, StandardCharsets.US_ASCII);
  }

  private static int placeAfter(byte[] mark, byte[] pickled) {
    for (int at = 0; at + mark.length <= pickled.length; at++) {
      if (Arrays.equals(pickled, at, at + mark.length, mark, 0, mark.length)) {
        return at + mark.length;
      }
    }
    return -1;
  }

  /** Open the file, not through a link; or its content. */
  SeekableByteChannel open() throws IOException {
    if (content != null) {
      return new ByteArrayReadableSeekableByteChannel(content);
    }
    Set<OpenOption> how = Set.of(StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS);
    return FileChannel.open(path, how);
  }

  /**
   * Refuse a file that is not, byte for byte, the one that was written: what Arrow maps, it believes.
   *
   * <p>Once in a process, and again after a change, as `segments.py` does it for Python's readers.
   */
  void requireSound() throws IOException {
    if (content != null) {
      if (checksum != checksumOfFile()) {
        throw new IOException(path + " did not arrive as it was written");
      }
      return;
    }
    Map<String, Object> facts =
        Files.readAttributes(path, "unix:isRegularFile,ino,ctime,size", LinkOption.NOFOLLOW_LINKS);
    if (!Boolean.TRUE.equals(facts.get("isRegularFile"))) {
      throw new IOException(path + " is a link or not a file");
    }
    if (!facts.get("size").equals(sizeBytes)) {
      throw new IOException(path + " differs in size from what was written");
    }
    List<Object> which = List.of(path, facts.get("ino"), facts.get("ctime"), sizeBytes);
    if (knownChecksum(which) != checksum) {
      throw new IOException(path + " differs from what was written");
    }
  }

  private long knownChecksum(List<Object> which) throws IOException {
    Long known;
    synchronized (KNOWN) {
      known = KNOWN.get(which);
    }
    if (known == null) {
      known = checksumOfFile();
      synchronized (KNOWN) {
        KNOWN.put(which, known);
      }
    }
    return known;
  }

  private long checksumOfFile() throws IOException {
    CRC32 sum = new CRC32();
    if (content != null) { // Arrow's channel of bytes does not say where they end
      sum.update(content);
      return sum.getValue();
    }
    byte[] piece = new byte[PIECE_BYTES];
    try (InputStream file = Channels.newInputStream(open())) {
      for (int size = file.read(piece); size >= 0; size = file.read(piece)) {
        sum.update(piece, 0, size);
      }
    }
    return sum.getValue();
  }
}
