import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * `Writer BOOTSTRAP TOPIC` sends lines "PARTITION NUMBER VALUE" (the value being the bytes up to the line's end) and
 * writes "NUMBER OFFSET" for each acknowledgement, or "error NUMBER ...". Retries never end, and idempotence is the
 * client's default.
 */
public final class Writer {
    private Writer() {}

    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        properties.put("delivery.timeout.ms", Integer.toString(Integer.MAX_VALUE));
        properties.put("max.block.ms", Integer.toString(Integer.MAX_VALUE));
        properties.put("request.timeout.ms", "10000");
        properties.put("linger.ms", "2");
        properties.put("reconnect.backoff.ms", "10");
        properties.put("reconnect.backoff.max.ms", "200");
        InputStream in = new BufferedInputStream(System.in, 1 << 20);
        try (var producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (byte[] line = line(in); line != null; line = line(in)) {
                int first = space(line, 0);
                int second = space(line, first + 1);
                int partition = Integer.parseInt(text(line, 0, first));
                String number = text(line, first + 1, second);
                byte[] value = Arrays.copyOfRange(line, second + 1, line.length);
                producer.send(new ProducerRecord<>(args[1], partition, null, value), (metadata, error) -> {
                    System.out.println(error == null ? number + " " + metadata.offset() : "error " + number + " " + error);
                });
            }
        }
    }

    private static byte[] line(InputStream in) throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int b = in.read(); b != '\n'; b = in.read()) {
            if (b < 0) {
                return null;
            }
            line.write(b);
        }
        return line.toByteArray();
    }

    private static int space(byte[] line, int from) {
        int at = from;
        while (line[at] != ' ') {
            at++;
        }
        return at;
    }

    private static String text(byte[] line, int from, int to) {
        return new String(line, from, to - from, StandardCharsets.US_ASCII);
    }
}
