// The conformance suite that every device must pass. A device's own test registers it
// once, for each way in which the device can be configured:
//
//   const int registered = foliot::register_conformance("cpu", [] { return make_cpu_device(); });
//
// Each kind of operator is held against the reference (reference.h), and each
// such graph also against the contract of device.h: any split into ranges, any
// pages, any lane of a width, whatever runs beside, and any neighbours in the batch give the
// same bits.
#ifndef FOLIOT_ENGINE_DEVICE_CONFORMANCE_CONFORMANCE_H_
#define FOLIOT_ENGINE_DEVICE_CONFORMANCE_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <string>

#include "engine/device/device.h"

namespace foliot {

using DeviceFactory = std::function<std::unique_ptr<Device>()>;

// Whether a device does not claim a test of this name. Of an operator it must then refuse to lower the graph.
using Unclaimed = std::function<bool(const std::string& test)>;

// Registers all tests of the suite under "<name>Conformance"; returns how many.
// Call before the tests run.
int register_conformance(const std::string& name, const DeviceFactory& make_device, const Unclaimed& unclaimed = {});

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CONFORMANCE_CONFORMANCE_H_
