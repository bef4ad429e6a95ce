import com.github.shyiko.mysql.binlog.BinaryLogFileReader;
import com.github.shyiko.mysql.binlog.event.Event;
import com.github.shyiko.mysql.binlog.event.WriteRowsEventData;
import com.github.shyiko.mysql.binlog.event.deserialization.ChecksumType;
import com.github.shyiko.mysql.binlog.event.deserialization.EventDeserializer;
import com.sun.management.OperatingSystemMXBean;
import java.io.File;
import java.lang.management.ManagementFactory;

/** Decodes a binlog file several times; prints rows, seconds and CPU seconds of each pass. */
public class BinlogRows {
    public static void main(String[] arguments) throws Exception {
        OperatingSystemMXBean machine =
                (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        for (int pass = 0; pass < Integer.parseInt(arguments[1]); pass++) {
            EventDeserializer deserializer = new EventDeserializer();
            deserializer.setChecksumType(ChecksumType.NONE);
            long rows = 0, begun = System.nanoTime(), spent = machine.getProcessCpuTime();
            try (BinaryLogFileReader reader =
                    new BinaryLogFileReader(new File(arguments[0]), deserializer)) {
                for (Event event; (event = reader.readEvent()) != null; ) {
                    if (event.getData() instanceof WriteRowsEventData) {
                        rows += ((WriteRowsEventData) event.getData()).getRows().size();
                    }
                }
            }
            System.out.printf("%d %f %f%n", rows, (System.nanoTime() - begun) / 1e9,
                    (machine.getProcessCpuTime() - spent) / 1e9);
        }
    }
}
