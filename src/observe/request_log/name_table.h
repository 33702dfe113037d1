// NameTable: keeps each name once, for as long as the table lives, so that records
// can hold views of names.
//
// Threading: not thread-safe; views that were handed out may be read by any thread.
#ifndef FOLIOT_OBSERVE_REQUEST_LOG_NAME_TABLE_H_
#define FOLIOT_OBSERVE_REQUEST_LOG_NAME_TABLE_H_

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace foliot {

class NameTable {
 public:
  std::string_view keep(std::string_view name) {
    const auto found = names_.find(name);
    return found != names_.end() ? *found : *names_.emplace(name).first;
  }

 private:
  std::set<std::string, std::less<>> names_;
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_REQUEST_LOG_NAME_TABLE_H_
