// Many of the oracle's random cases in one virtual machine, whose start costs more than a case.
//
//     java -cp <the oracle's class path> random_logs.java FIRST COUNT DIRECTORY CLEANS
//
// writes DIRECTORY/random-<seed> as `oracle random SEED` does.
import java.io.File;
import java.lang.reflect.Method;

class RandomLogs {
    public static void main(String[] arguments) throws Exception {
        Method make = Class.forName("daemon.oracle.RandomLog").getDeclaredMethod("run", long.class, File.class, int.class);
        make.setAccessible(true);
        long first = Long.parseLong(arguments[0]), count = Long.parseLong(arguments[1]);
        for (long seed = first; seed < first + count; ++seed)
            make.invoke(null, seed, new File(arguments[2], "random-" + seed), Integer.parseInt(arguments[3]));
        System.exit(0);  // Kafka's threads are no reason to stay
    }
}
