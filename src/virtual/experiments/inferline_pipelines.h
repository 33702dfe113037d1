// The four pipelines of InferLine (Figure 4.2) with profiles like those of its Figure 4.3: of a
// CPU, and of a K80 and the CPU that feeds it.
//
// The thesis prints few numbers. Those that it has are met: ResNet-152 does 0.6 queries per
// second on a CPU and 50.6 on a K80, in batches of 32; pre-processing gains nothing from batches
// or a GPU. The others are of networks of that size on such hardware. Prices are EC2's of 2018,
// computed as in section 4.6.
#ifndef FOLIOT_VIRTUAL_EXPERIMENTS_INFERLINE_PIPELINES_H_
#define FOLIOT_VIRTUAL_EXPERIMENTS_INFERLINE_PIPELINES_H_

#include <string_view>
#include <vector>

#include "planning/pipelines/planned_pipeline.h"

namespace foliot {

PlannedPipeline inferline_image();    // pre-process, classify
PlannedPipeline inferline_video();    // detect; then vehicles, persons and licence plates, where there are some
PlannedPipeline inferline_social();   // identify the language, translate if necessary, categorise; classify the image
PlannedPipeline inferline_cascade();  // a fast network, and a slow one where that is not sure

std::vector<PlannedPipeline> inferline_pipelines();

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_EXPERIMENTS_INFERLINE_PIPELINES_H_
