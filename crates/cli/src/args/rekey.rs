//! `sealog journal rekey DIR ...`: its operations and their flags.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use sealog_seal::SlotParams;

use super::{KeyArgs, PlaceArgs};

#[derive(Debug, Args)]
pub struct Rekey {
    /// The journal's directory
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    #[command(subcommand)]
    pub operation: Operation,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub key: KeyArgs,
}

/// What is done to the keyring. All but `list` and `export-keyring` need the node stopped.
#[derive(Debug, Subcommand)]
pub enum Operation {
    /// List slots and root keys, and what names each root key
    List,
    /// Let one more key file or passphrase open the journal
    AddSlot(AddSlot),
    /// Take a slot away; another one must stay
    RemoveSlot(RemoveSlot),
    /// New keys for everything that is written from now on
    Rotate(Rotate),
    /// Write the keyring to a file, for the day when both copies are lost
    ExportKeyring(ExportKeyring),
    /// Put an exported keyring back
    ImportKeyring(ImportKeyring),
}

#[derive(Debug, Args)]
pub struct AddSlot {
    /// 1 to 64 printable characters, unique in the journal
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The key file that is to open the journal; made (0600) if it does not exist
    #[arg(long, value_name = "FILE", conflicts_with = "new_passphrase_file")]
    pub new_key_file: Option<PathBuf>,
    /// A file whose text is the new passphrase [default: ask on the terminal]
    #[arg(long, value_name = "FILE")]
    pub new_passphrase_file: Option<PathBuf>,
    /// Take this slot away in the same step: a passphrase is changed so
    #[arg(long, value_name = "NAME")]
    pub replacing: Option<String>,
    /// What a passphrase costs to try: Argon2id memory in KiB, passes, lanes
    #[arg(long, value_name = "KIB/PASSES/LANES", default_value = "65536/3/4", value_parser = stretch)]
    pub stretch: SlotParams,
}

#[derive(Debug, Args)]
pub struct RemoveSlot {
    /// The slot's name, as `list` shows it
    #[arg(value_name = "NAME")]
    pub name: String,
}

#[derive(Debug, Args)]
pub struct Rotate {
    /// A slot that is not to open the journal any more (may be given more than once)
    #[arg(long, value_name = "NAME")]
    pub drop_slot: Vec<String>,
    /// Drop every slot whose secret is not given and make a new slot `recovery`
    #[arg(long)]
    pub new_recovery: bool,
    /// Write the recovery secret to this new file (0600) instead of showing it once on the terminal
    #[arg(long, value_name = "FILE", requires = "new_recovery")]
    pub recovery_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ExportKeyring {
    /// A new file (0600)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

#[derive(Debug, Args)]
pub struct ImportKeyring {
    /// What export-keyring wrote
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Also over a keyring of the same or a later generation, and where segments were made with a key that it lacks
    #[arg(long)]
    pub replace: bool,
}

fn stretch(text: &str) -> Result<SlotParams, &'static str> {
    const RULE: &str = "costs lie between 19456/2/1 and 1048576/16/8 (KiB of memory, passes, lanes)";
    let mut numbers = text.split('/').map(str::parse::<u32>);
    match (numbers.next(), numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(memory)), Some(Ok(passes)), Some(Ok(lanes)), None) => {
            SlotParams::new(memory, passes, lanes).ok_or(RULE)
        }
        _ => Err(RULE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_bounded() {
        assert_eq!(stretch("19456/2/1"), Ok(SlotParams::FLOOR));
        assert_eq!(stretch("1048576/16/8"), Ok(SlotParams::CEILING));
        for text in
            ["", "19455/2/1", "19456/1/1", "1048577/16/8", "65536/17/4", "65536/3", "65536/3/4/1", "a/b/c"]
        {
            assert!(stretch(text).is_err(), "{text}");
        }
    }
}
