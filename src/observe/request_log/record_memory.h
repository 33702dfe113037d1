// RecordMemory: what records refer to that were read, or are kept: names, each once, and lists of
// requests. It lives as long as they do.
//
// Threading: not thread-safe; what was handed out may be read by any thread.
#ifndef FOLIOT_OBSERVE_REQUEST_LOG_RECORD_MEMORY_H_
#define FOLIOT_OBSERVE_REQUEST_LOG_RECORD_MEMORY_H_

#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "foundation/core/ids.h"
#include "observe/request_log/name_table.h"

namespace foliot {

class RecordMemory {
 public:
  std::string_view keep(std::string_view name) { return names_.keep(name); }
  std::span<const RequestId> keep(std::span<const RequestId> requests) {
    return lists_.emplace_back(requests.begin(), requests.end());
  }

 private:
  NameTable names_;
  std::deque<std::vector<RequestId>> lists_;
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_REQUEST_LOG_RECORD_MEMORY_H_
