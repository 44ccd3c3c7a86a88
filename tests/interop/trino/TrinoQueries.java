import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.trino.Session;
import io.trino.plugin.hudi.HudiConnectorFactory;
import io.trino.spi.Plugin;
import io.trino.spi.connector.Connector;
import io.trino.spi.connector.ConnectorContext;
import io.trino.spi.connector.ConnectorFactory;
import io.trino.testing.MaterializedResult;
import io.trino.testing.StandaloneQueryRunner;
import io.trino.testing.TestingSession;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Trino with the catalog "hudi": answers each line with a JSON text, a statement, by a line with its rows in JSON. */
public final class TrinoQueries
{
    private TrinoQueries() {}

    /** Arguments are properties of the catalog, as key=value. */
    public static void main(String[] arguments)
            throws Exception
    {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        Map<String, String> properties = new HashMap<>();
        for (String argument : arguments) {
            int equal = argument.indexOf('=');
            properties.put(argument.substring(0, equal), argument.substring(equal + 1));
        }
        Session session = TestingSession.testSessionBuilder().setCatalog("hudi").setSchema("default").build();
        ObjectMapper json = new ObjectMapper();
        try (StandaloneQueryRunner trino = new StandaloneQueryRunner(session)) {
            trino.installPlugin(new LocalHudi());
            trino.createCatalog("hudi", "hudi", properties);
            answers.println("{\"ready\": true}");
            BufferedReader statements = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = statements.readLine(); line != null; line = statements.readLine()) {
                answers.println(json.writeValueAsString(answer(trino, json.readTree(line).asText())));
            }
        }
        System.exit(0);
    }

    private static Map<String, Object> answer(StandaloneQueryRunner trino, String statement)
    {
        try {
            MaterializedResult result = trino.execute(trino.getDefaultSession(), statement);
            return Map.of("rows", result.getMaterializedRows().stream().map(row -> simple(row.getFields())).toList());
        }
        catch (RuntimeException failure) {
            failure.printStackTrace();
            StringBuilder causes = new StringBuilder();
            for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
                causes.append(causes.isEmpty() ? "" : ", caused by ").append(cause);
            }
            return Map.of("error", causes.toString());
        }
    }

    /** Numbers, truth values and nulls stay. Other values become their text: bytes in Base64. */
    private static Object simple(Object value)
    {
        return switch (value) {
            case Boolean same -> same;
            case Byte same -> same;
            case Short same -> same;
            case Integer same -> same;
            case Long same -> same;
            case Float same -> same;
            case Double same -> same;
            case List<?> items -> {
                List<Object> all = new ArrayList<>();
                items.forEach(item -> all.add(simple(item)));
                yield all;
            }
            case Map<?, ?> entries -> {
                Map<String, Object> all = new LinkedHashMap<>();
                entries.forEach((key, item) -> all.put(key.toString(), simple(item)));
                yield all;
            }
            case null -> null;
            default -> value.toString();
        };
    }

    private static final class LocalHudi
            implements Plugin, ConnectorFactory
    {
        @Override
        public Iterable<ConnectorFactory> getConnectorFactories()
        {
            return List.of(this);
        }

        @Override
        public String getName()
        {
            return "hudi";
        }

        @Override
        public Connector create(String name, Map<String, String> properties, ConnectorContext context)
        {
            return HudiConnectorFactory.createConnector(name, properties, context, Optional.of(new LocalTables()));
        }
    }
}
