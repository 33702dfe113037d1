// Status and Result<T>: a failure as a value.
//
// A failure is something outside the program that went wrong (a file, a request,
// a full disk). Bugs are CHECKed (foundation/base/check.h). Expected results, such as "too
// late", are values of their own and never a Status. The message is for the
// person who has to act: it names the thing and the limit, and what to do.
#ifndef FOLIOT_FOUNDATION_BASE_STATUS_H_
#define FOLIOT_FOUNDATION_BASE_STATUS_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {

// A code exists because a caller acts on it; the comment says how the front end does.
enum class StatusCode {
  kOk,
  kInvalidArgument,    // 400: the caller sent something wrong
  kNotFound,           // 404: no such model, version, file
  kAlreadyExists,      // 409: name taken, port in use
  kResourceExhausted,  // 413/507: over a limit; disk or page cache too small
  kUnimplemented,      // 501: understood and not supported, e.g. an ONNX operator
  kUnavailable,        // 503: not now; the same call may succeed later
  kInternal,           // 500: everything else
};

std::string_view to_string(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status ok_status() { return Status(); }
  static Status invalid_argument(std::string m) { return {StatusCode::kInvalidArgument, std::move(m)}; }
  static Status not_found(std::string m) { return {StatusCode::kNotFound, std::move(m)}; }
  static Status already_exists(std::string m) { return {StatusCode::kAlreadyExists, std::move(m)}; }
  static Status resource_exhausted(std::string m) { return {StatusCode::kResourceExhausted, std::move(m)}; }
  static Status unimplemented(std::string m) { return {StatusCode::kUnimplemented, std::move(m)}; }
  static Status unavailable(std::string m) { return {StatusCode::kUnavailable, std::move(m)}; }
  static Status internal(std::string m) { return {StatusCode::kInternal, std::move(m)}; }

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }
  // The same failure, said of a larger thing: "model 'x': <message>".
  Status with_context(std::string_view context) const {
    return ok() ? *this : Status(code_, std::string(context) + ": " + message_);
  }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT: implicit by design
  Result(Status status) : status_(std::move(status)) {  // NOLINT: implicit by design
    FOLIOT_CHECK(!status_.ok());
  }
  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  // REQUIRES: ok().
  T& value() & {
    FOLIOT_CHECK(ok());
    return *value_;
  }
  const T& value() const& {
    FOLIOT_CHECK(ok());
    return *value_;
  }
  T&& value() && {
    FOLIOT_CHECK(ok());
    return *std::move(value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace foliot

#define FOLIOT_CONCAT_INNER(a, b) a##b
#define FOLIOT_CONCAT(a, b) FOLIOT_CONCAT_INNER(a, b)

#define FOLIOT_RETURN_IF_ERROR(expression)                                                        \
  do {                                                                                            \
    if (::foliot::Status foliot_status = (expression); !foliot_status.ok()) return foliot_status; \
  } while (false)

// FOLIOT_ASSIGN_OR_RETURN(auto program, read_package(path));
#define FOLIOT_ASSIGN_OR_RETURN(declaration, expression) \
  FOLIOT_ASSIGN_OR_RETURN_INNER(FOLIOT_CONCAT(foliot_result_, __LINE__), declaration, expression)
#define FOLIOT_ASSIGN_OR_RETURN_INNER(result, declaration, expression) \
  auto result = (expression);                                          \
  if (!result.ok()) return result.status();                            \
  declaration = std::move(result).value()

#endif  // FOLIOT_FOUNDATION_BASE_STATUS_H_
