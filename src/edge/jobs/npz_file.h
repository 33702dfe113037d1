// NpzFile: arrays by their names in NumPy's .npz format, as savez() and savez_compressed() write it.
#ifndef FOLIOT_EDGE_JOBS_NPZ_FILE_H_
#define FOLIOT_EDGE_JOBS_NPZ_FILE_H_

#include <filesystem>
#include <map>
#include <string>

#include "edge/jobs/npy_file.h"
#include "foundation/base/status.h"

namespace foliot {

// Errors: kNotFound; kInvalidArgument for what is damaged, or read_npy()'s of one array. All name
// the file and, of what is in it, the array.
Result<std::map<std::string, NpyArray>> read_npz(const std::filesystem::path& path);

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_NPZ_FILE_H_
