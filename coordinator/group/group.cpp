#include "coordinator/group/group.h"

namespace tidemark::coordinator {

std::string_view to_string(GroupType type) {
    switch (type) {
        case GroupType::classic: return "classic";
        case GroupType::consumer: return "consumer";
    }
    return "unknown";
}

}  // namespace tidemark::coordinator
