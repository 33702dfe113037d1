// Complaints: what was said of peers that cannot be reached. The same comes several times a second, and of two
// controllers by turns.
#ifndef FOLIOT_CLUSTER_SESSIONS_COMPLAINTS_H_
#define FOLIOT_CLUSTER_SESSIONS_COMPLAINTS_H_

#include <cstddef>
#include <set>
#include <string>

namespace foliot {

class Complaints {
 public:
  // Returns whether the text is to be logged: it was not since the last forget(), as far as kKept go back.
  bool is_new(const std::string& text) {
    if (said_.size() >= kKept) said_.clear();
    return said_.insert(text).second;
  }
  // All is well again.
  void forget() { said_.clear(); }

 private:
  static constexpr size_t kKept = 64;
  std::set<std::string> said_;
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_COMPLAINTS_H_
