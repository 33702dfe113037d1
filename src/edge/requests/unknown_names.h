// UnknownNames: the names in requests that Foliot does not know and ignores. Each is
// logged once, and counted (foliot_unknown_names_total), so that a misspelt parameter
// does not go unnoticed.
//
// Names come from clients: they are shown as ASCII without control characters and at
// most kNameBytesMax long. Limit: the first kNamesMax names are counted separately; all
// others count as one, "(others)".
//
// Threading: any thread.
#ifndef FOLIOT_EDGE_REQUESTS_UNKNOWN_NAMES_H_
#define FOLIOT_EDGE_REQUESTS_UNKNOWN_NAMES_H_

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "edge/requests/request_parameters.h"
#include "foundation/base/mutex.h"

namespace foliot {

class UnknownNames {
 public:
  static constexpr size_t kNamesMax = 100;
  static constexpr size_t kNameBytesMax = 64;

  // `log` takes one line; `count` the place where a name stands and the name, which is one
  // of boundedly many. Neither may block.
  using Log = std::function<void(const std::string&)>;
  using Count = std::function<void(std::string_view place, std::string_view name)>;
  UnknownNames(Log log, Count count) : log_(std::move(log)), count_(std::move(count)) {}

  void note(const UnknownNamesOfRequest& request);

 private:
  // The label that it counts under.
  std::string_view known_as(NamePlace place, const std::string& shown);

  const Log log_;
  const Count count_;
  Mutex mutex_;
  std::set<std::pair<NamePlace, std::string>> known_ GUARDED_BY(mutex_);
  bool full_ GUARDED_BY(mutex_) = false;  // and this was logged
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_REQUESTS_UNKNOWN_NAMES_H_
