// Wormcast for Tofino 2 (T2NA). What differs between the two chips is here; all else is wormcast.p4.

#include <core.p4>
#include <t2na.p4>

// Device ports of the CPU and of recirculation, the same in every pipe: its low seven bits.
const PortId_t CPU_PORTS = 0x00;           // 0-3: PCIe and Ethernet to the CPU
const PortId_t CPU_PORTS_MASK = 0x7c;
const PortId_t RECIRCULATION_PORTS = 0x06; // 6-7
const PortId_t RECIRCULATION_PORTS_MASK = 0x7e;

// Cells in the queue from which CE is marked: 44 KiB in cells of 176 bytes.
const bit<19> CE_QUEUE_CELLS = 256;

#include "wormhole.p4"
#include "wormcast.p4"
