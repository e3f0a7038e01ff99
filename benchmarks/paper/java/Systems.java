/** Which client a system has. A class of clients is loaded when it is asked for, so that one system's jars are enough. */
final class Systems {
    private Systems() {
    }

    static Sender sender(String system, String address, String name, int batch, boolean acknowledged) throws Exception {
        return switch (system) {
            case "kafka", "pylog" -> new KafkaSide.Producer(address, name, batch, acknowledged);
            case "rabbitmq" -> new RabbitSide.Publisher(address, name, acknowledged);
            case "activemq" -> new ActiveSide.Producer(address, name, acknowledged);
            default -> throw new IllegalArgumentException("no such system: " + system);
        };
    }

    static Receiver receiver(String system, String address, String name) throws Exception {
        return switch (system) {
            case "kafka", "pylog" -> new KafkaSide.Consumer(address, name);
            case "rabbitmq" -> new RabbitSide.Consumer(address, name);
            case "activemq" -> new ActiveSide.Consumer(address, name);
            default -> throw new IllegalArgumentException("no such system: " + system);
        };
    }
}
