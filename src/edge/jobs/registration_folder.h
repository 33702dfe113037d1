// RegistrationFolder: the draft of one registration: what it is made of, and what will be moved into the repository.
//
//   source/model.onnx, validation.npz, request.json   what the VariantMaker reads
//   made/int8.onnx                    the network in int8, if that was asked
//   made/rows/0.npy, 1.npy ...        of the inputs, the rows that measure
//   made/labels.npy                   their labels, INT64
//   made/made.json                    {"inputs": ["x"], "output": "scores", "rows": 500, "calibrated": 100}
//   NAME-PRECISION/model.onnx, model.toml   the variants
//   answers/                          of the variant that is measured
//
// What lies in made/ comes from a process that is not trusted: it is read below that folder alone, and checked.
//
// Threading: none.
#ifndef FOLIOT_EDGE_JOBS_REGISTRATION_FOLDER_H_
#define FOLIOT_EDGE_JOBS_REGISTRATION_FOLDER_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "edge/jobs/input_file.h"
#include "edge/jobs/job_folder.h"
#include "edge/jobs/job_kind.h"
#include "edge/jobs/registration_request.h"
#include "foundation/base/status.h"
#include "foundation/platform/descriptor.h"

namespace foliot {

// What was made of a validation set.
struct MeasuringSet {
  std::map<std::string, InputFile> inputs;  // by name; all have as many rows
  InputFile labels;
  std::string output;       // that is compared with them
  uint64_t rows = 0;        // of the whole set
  uint64_t calibrated = 0;  // of these, that calibrated int8
};

class RegistrationFolder {
 public:
  explicit RegistrationFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path source() const { return path_ / "source"; }
  std::filesystem::path made() const { return path_ / "made"; }
  std::filesystem::path variant(const std::string& model) const { return path_ / model; }

  // Empty, in place of what was there. Errors: kResourceExhausted, kInternal, naming it, here and below.
  Status make() const;
  // Copies what the request names from the folder of jobs. Returns early, as kUnavailable, once the context is over.
  // Errors: JobFolder's; kResourceExhausted for a file over its limit.
  Status copy_source(const JobFolder& folder, const RegistrationRequest& request, const JobContext& context) const;
  // The folders of the variants, of what was copied and made. Errors: kInvalidArgument, if something was not made.
  Status make_variants(const RegistrationRequest& request) const;
  Result<MeasuringSet> measuring_set() const;
  // An empty folder for the answers of one variant.
  Result<Descriptor> make_answers() const;
  Result<InputFile> answers(const std::string& output) const;
  // With all that is in it.
  void remove() const;

 private:
  std::filesystem::path path_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_REGISTRATION_FOLDER_H_
