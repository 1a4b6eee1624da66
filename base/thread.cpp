#include "base/thread.h"

#include <pthread.h>

#include <algorithm>

namespace tidemark {

void name_this_thread(std::string name) {
    name.resize(std::min<std::size_t>(name.size(), 15));
    pthread_setname_np(pthread_self(), name.c_str());
}

}  // namespace tidemark
