/// A whole broker in this process: storage, metadata and the server on a free port of loopback.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/apply_image.h"
#include "daemon/broker.h"
#include "daemon/server.h"
#include "io/memory_file_system.h"
#include "metadata/local_controller.h"
#include "protocol/messages/fetch_response.h"
#include "protocol/messages/produce_request.h"
#include "protocol/messages/produce_response.h"
#include "record/builder.h"
#include "tests/support/daemon/test_client.h"

namespace tidemark::test {

struct TestBrokerOptions {
    daemon::Options daemon = {};
    storage::StorageOptions storage = {};       ///< log_dirs: "/data" when empty
    metadata::ConfigMap file = {};
    io::FileSystem* files = nullptr;            ///< the test's own; otherwise one in memory
    const Clock* clock = nullptr;               ///< the test's own; otherwise the system's
    std::function<void()> alive = {};
};

/// Threads: the test's; the broker's own run beside it.
class TestBroker {
public:
    explicit TestBroker(TestBrokerOptions = {});
    ~TestBroker();

    std::uint16_t port() const { return server_->listeners().front().port; }
    TestClient client() const { return TestClient{port()}; }
    daemon::Server& server() { return *server_; }
    daemon::Broker& broker() { return server_->broker(); }
    metadata::LocalController& controller() { return *controller_; }
    storage::LogManager& logs() { return *logs_; }
    storage::Log& log(const std::string& topic, std::int32_t partition = 0);

    Uuid create_topic(const std::string& name, std::int32_t partitions = 1, std::vector<std::pair<std::string, std::optional<std::string>>> configs = {});
    void delete_topic(const std::string& name);

private:
    struct ServerListener final : metadata::ImageListener {
        daemon::Server* server = nullptr;
        void image_changed(const metadata::ImagePtr&, const metadata::ImagePtr& after) override {
            if (server != nullptr) server->image_changed(after);
        }
    };
    std::unique_ptr<io::MemoryFileSystem> own_files_;
    SystemClock system_clock_;
    std::unique_ptr<storage::LogManager> logs_;
    std::unique_ptr<metadata::LocalController> controller_;
    std::unique_ptr<daemon::ImageApplier> applier_;
    ServerListener server_listener_;
    std::unique_ptr<daemon::Server> server_;
};

/// A batch of records "value", "value", … as a producer sends them: offsets from 0.
std::vector<std::byte> batch_of(const std::vector<std::string>& values, record::BatchOptions = {});
/// A request that appends `records` to one partition; the bytes must stay. Versions from 13 on name the topic by id.
protocol::ProduceRequest produce_request(const std::string& topic, Uuid id, std::int32_t partition, std::vector<std::byte>& records, std::int16_t acks = -1);
/// The values in a partition's records, whole batches only.
std::vector<std::string> values_of(const protocol::fetch_response::PartitionData&);

}  // namespace tidemark::test
