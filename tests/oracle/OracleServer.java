package daemon.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * The oracle's commands without a start of the JVM for each: a line of JSON asks, a line of JSON answers.
 *
 * <pre>{"command": "random", "seed": 1, "directory": D, "cleans": 5}     → {}
 * {"command": "dump", "directory": D}                                → as `oracle dump`
 * {"command": "recover", "directory": D, "script": FILE, "args": {}} → as `oracle recover`
 * {"exception": "..."} when it throws</pre>
 */
public final class OracleServer {
    private OracleServer() { }

    public static void main(String[] argv) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);  // whatever else is printed is no answer
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            JsonNode answer;
            try {
                answer = answerTo(Json.MAPPER.readTree(line));
            } catch (Exception e) {
                answer = Json.obj().put("exception", e.toString());
            }
            answers.println(Json.MAPPER.writeValueAsString(answer));
            answers.flush();
        }
        System.exit(0);
    }

    private static JsonNode answerTo(JsonNode question) throws Exception {
        File directory = new File(question.get("directory").asText());
        switch (question.get("command").asText()) {
            case "random":
                RandomLog.run(question.get("seed").asLong(), directory, question.get("cleans").asInt());
                return Json.obj();
            case "dump":
                return Dumper.dump(directory, true);
            case "recover": {
                ObjectNode args = question.get("args").deepCopy();
                ObjectNode config = args.putObject("config");
                Store.configOf(Json.read(new File(question.get("script").asText())).get("config")).forEach(config::put);
                return Actions.run("recover", directory, Map.of(), args);
            }
            default:
                throw new IllegalArgumentException("no such command");
        }
    }
}
