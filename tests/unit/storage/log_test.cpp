#include "storage/log.h"

#include "tests/support/storage_log.h"

namespace tidemark {
namespace {

using test::StorageLog;

TEST(Log, KeepsWhatIsAppendedOverAStop) {
    StorageLog log;
    log.append("a=1 [b=1 c=~] | a=2");
    EXPECT_EQ(log.text(), "0:a=1 [1:b=1 2:c=~] | 3:a=2");
    EXPECT_EQ(log->log_end_offset(), Offset{4});
    log.reopen();
    EXPECT_EQ(log.text(), "0:a=1 [1:b=1 2:c=~] | 3:a=2");
    EXPECT_EQ(log.read(Offset{0}), "0:a=1 [1:b=1 2:c=~] 3:a=2");
    log.append("d=1");
    EXPECT_EQ(log.read(Offset{3}), "3:a=2 4:d=1");
}

}  // namespace
}  // namespace tidemark
