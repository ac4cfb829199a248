// Wormcast for Tofino (TNA). What differs between the two chips is here; all else is wormcast.p4.

#include <core.p4>
#include <tna.p4>

// Device ports of the CPU and of recirculation, the same in every pipe: its low seven bits.
const PortId_t CPU_PORTS = 0x40;           // 64-67: Ethernet and PCIe to the CPU
const PortId_t CPU_PORTS_MASK = 0x7c;
const PortId_t RECIRCULATION_PORTS = 0x44; // 68-71
const PortId_t RECIRCULATION_PORTS_MASK = 0x7c;

// Cells in the queue from which CE is marked: 40 KiB in cells of 80 bytes.
const bit<19> CE_QUEUE_CELLS = 512;

#include "packet_mode.p4"
#include "wormcast.p4"
