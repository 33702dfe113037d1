// RegistrationRequest: what a job of the kind "register" is asked, as JSON:
//
//   {"task": "digits", "name": "digits", "file": "digits.onnx", "validation": "digits.npz"}
//
// Paths are relative to the folder of jobs. The network becomes variants, models named NAME-PRECISION, of the task.
#ifndef FOLIOT_EDGE_JOBS_REGISTRATION_REQUEST_H_
#define FOLIOT_EDGE_JOBS_REGISTRATION_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"

namespace foliot {

struct RegistrationRequest {
  std::string task;        // that the variants answer; a new one, or one that is there
  std::string name;        // of the network; the task's, if it has none
  std::string file;        // the network, ONNX in float32
  std::string validation;  // an .npz with an array for each input, rows first, and the labels
  std::vector<std::string> precisions{"float32", "bfloat16", "int8"};
  std::vector<uint32_t> batch_sizes{1, 2, 4, 8};
  std::string labels = "labels";   // the array of the validation set that has the classes
  std::string output;              // that is compared with them; empty: the network's first
  double calibration = 0.2;        // share of the rows that calibrate int8
  std::optional<double> accuracy;  // of a new task: what calls get at least that ask for none
  std::string default_slo;         // of a new task, such as 100ms; empty: none

  std::string model_of(const std::string& precision) const { return name + "-" + precision; }
  // Of all precisions, in their order.
  std::vector<std::string> models() const;

  // Errors: kInvalidArgument naming the member, its value and what is allowed.
  static Result<RegistrationRequest> parse(std::string_view json);
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_REGISTRATION_REQUEST_H_
