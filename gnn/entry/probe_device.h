#pragma once

#include "cuda/device.h"
#include "rhizome/entry.h"

namespace rhizome {
inline namespace internal {

/// Opens the device that `train --device cuda` uses, and measures the rate of copies to it. Errors:
/// errors of OpenCudaComputeDevice; kOutOfMemory; kIoError, the device failed.
Result<DeviceProbe> ProbeCudaDevice();

/// Like ProbeCudaDevice, for a device that is already open.
Result<DeviceProbe> ProbeOpenDevice(Device& device);

}  // namespace internal
}  // namespace rhizome
