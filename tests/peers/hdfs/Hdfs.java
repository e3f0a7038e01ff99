import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** An HDFS in the folder that is named, until standard input ends; prints the port of WebHDFS. */
public class Hdfs {
    public static void main(String[] words) throws Exception {
        Configuration settings = new Configuration();
        settings.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, new File(words[0]).getAbsolutePath());
        settings.set("dfs.replication", "1");
        settings.set("dfs.permissions.enabled", "false");
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(settings).numDataNodes(1).build();
        cluster.waitActive();
        System.out.println("port " + cluster.getNameNode().getHttpAddress().getPort());
        System.out.flush();
        while (System.in.read() >= 0) {}
        cluster.shutdown();
        System.exit(0);
    }
}
