#include "tests/support/daemon/test_broker.h"

#include <gtest/gtest.h>

namespace tidemark::test {

namespace {

template <class T>
T must(Result<T> result) {
    if (!result) {
        ADD_FAILURE() << result.error().message();
        TM_ASSERT(result.has_value());
    }
    if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace

TestBroker::TestBroker(TestBrokerOptions options) {
    if (!options.files) own_files_ = std::make_unique<io::MemoryFileSystem>();
    auto& files = options.files ? *options.files : *own_files_;
    const Clock& clock = options.clock ? *options.clock : system_clock_;
    if (options.storage.log_dirs.empty()) options.storage.log_dirs = {"/data"};
    options.storage.durability = options.daemon.durability;

    logs_ = must(storage::LogManager::open(files, clock, options.storage, {.cluster_id = "", .node_id = 1}));
    std::vector<Uuid> directory_ids;
    for (const auto& directory : logs_->directories()) directory_ids.push_back(directory.directory_id);
    metadata::LocalControllerOptions metadata{.node_id = 1};
    metadata.log.directory = logs_->metadata_directory();
    metadata.directory_ids = directory_ids;
    metadata.file = options.file;
    controller_ = must(metadata::LocalController::open(files, clock, metadata));
    applier_ = std::make_unique<daemon::ImageApplier>(*logs_, 1, options.file);
    must(logs_->load(applier_->lookup(controller_->image())));
    must(controller_->start());
    applier_->resume(*controller_->image());
    controller_->add_listener(applier_.get());
    controller_->add_listener(&server_listener_);
    logs_->start();

    auto& listener = options.daemon.listeners.front();
    listener.host = "127.0.0.1";
    listener.port = 0;
    if (options.daemon.network_threads == 0) options.daemon.network_threads = 2;
    server_ = must(daemon::Server::open({.logs = *logs_, .controller = *controller_, .clock = clock, .alive = options.alive, .file_config = options.file}, options.daemon));
    server_listener_.server = server_.get();
    server_->start();
}

TestBroker::~TestBroker() {
    server_->stop(std::chrono::seconds{10});
    const auto epoch = controller_->stop();
    if (const auto closed = logs_->close(epoch ? *epoch : 0); !closed) std::fprintf(stderr, "not closed cleanly: %s\n", closed.error().message().c_str());
}

storage::Log& TestBroker::log(const std::string& topic, std::int32_t partition) {
    const auto log = logs_->find({topic, partition});
    TM_ASSERT(log != nullptr);
    return *log;
}

Uuid TestBroker::create_topic(const std::string& name, std::int32_t partitions, std::vector<std::pair<std::string, std::optional<std::string>>> configs) {
    metadata::NewTopic topic{.name = name, .partitions = partitions};
    topic.configs = std::move(configs);
    const auto created = controller_->create_topics({topic}, false);
    TM_ASSERT(created.size() == 1);
    EXPECT_TRUE(created.front().outcome.ok()) << created.front().outcome.message.value_or("");
    return created.front().id;
}

void TestBroker::delete_topic(const std::string& name) {
    const auto deleted = controller_->delete_topics({{.name = name}});
    EXPECT_TRUE(deleted.size() == 1 && deleted.front().outcome.ok());
}

std::vector<std::byte> batch_of(const std::vector<std::string>& values, record::BatchOptions options) {
    record::BatchBuilder builder;
    builder.start(options);
    Offset offset = options.base_offset;
    const auto now = SystemClock{}.now();
    for (const auto& value : values) {
        builder.append(offset, now, as_bytes("key"), as_bytes(value));
        ++offset;
    }
    std::vector<std::byte> batch;
    builder.finish(batch);
    return batch;
}

protocol::ProduceRequest produce_request(const std::string& topic, Uuid id, std::int32_t partition, std::vector<std::byte>& records, std::int16_t acks) {
    protocol::ProduceRequest request{.acks = acks, .timeout_ms = 10'000};
    auto& data = request.topic_data.emplace_back();
    data.name = topic;
    data.topic_id = id;
    data.partition_data.push_back({.index = partition, .records = protocol::Records{.bytes = records}});
    return request;
}

std::vector<std::string> values_of(const protocol::fetch_response::PartitionData& partition) {
    std::vector<std::string> values;
    if (!partition.records) return values;
    record::BatchCursor cursor{partition.records->bytes};
    record::RecordReader reader;
    for (auto batch = cursor.next(); batch && *batch; batch = cursor.next()) {
        EXPECT_TRUE((*batch)->crc_matches());
        EXPECT_TRUE(reader.open(**batch));
        for (auto record = reader.next(); record && *record; record = reader.next()) {
            values.push_back((*record)->value ? std::string{as_text(*(*record)->value)} : "~");
        }
    }
    return values;
}

}  // namespace tidemark::test
