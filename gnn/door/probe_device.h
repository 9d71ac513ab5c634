#pragma once

#include "rhizome/cuda/device.h"
#include "rhizome/gnn/entry.h"

namespace rhizome::inline internal {

/// Opens the device that `train --device cuda` takes, and measures how fast it is copied to.
/// Errors: those of OpenCudaComputeDevice; kOutOfMemory; kIoError, the device failed.
Result<DeviceProbe> ProbeCudaDevice();

/// The same of a device that is open.
Result<DeviceProbe> ProbeOpenDevice(Device& device);

}  // namespace rhizome::inline internal
