//! The journal on the simulated disk: what a writer leaves, what a crash leaves, what a start makes of it.

mod crash;
mod crash_judge;
mod crash_workloads;
mod crash_world;
mod damage;
mod damage_evidence;
mod damage_forge;
mod damage_image;
mod damage_newer;
mod damage_table;
mod fault_workloads;
mod faults;
mod faults_sites;
mod faults_space;
mod keys;
mod limits;
mod order;
mod readers;
mod readers_disk;
mod setup;
mod smoke;
mod splice;
mod splice_headers;
mod tails;
mod tails_writes;
