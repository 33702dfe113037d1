// SpareDescriptor: a descriptor that is kept for when the process has no other: with it, connections that wait are
// refused at once, and idle ones can be looked at.
//
// Threading: none.
#ifndef FOLIOT_EDGE_REQUESTS_SPARE_DESCRIPTOR_H_
#define FOLIOT_EDGE_REQUESTS_SPARE_DESCRIPTOR_H_

#include <functional>

namespace foliot {

// Between two attempts to accept a connection without descriptors.
inline constexpr int kPauseWithoutDescriptorsMilliseconds = 50;

class SpareDescriptor {
 public:
  SpareDescriptor() { take_back(); }
  ~SpareDescriptor() { give(); }
  SpareDescriptor(const SpareDescriptor&) = delete;
  SpareDescriptor& operator=(const SpareDescriptor&) = delete;

  // Whether `error` of accept() says that there is no descriptor, of the process or of the machine.
  static bool is_missing(int error);
  // Calls `use`, which may open one descriptor, and has closed it when it returns.
  void lend(const std::function<void()>& use);
  // Accepts what waits at the listener, which does not block, for `refuse` to answer, and closes it.
  void refuse_waiting(int listener, const std::function<void(int connection)>& refuse);

 private:
  void give();
  void take_back();

  int spare_ = -1;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_REQUESTS_SPARE_DESCRIPTOR_H_
