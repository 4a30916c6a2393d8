//! `sealog journal init DIR`: makes a journal and says where its key is.

use serde::Serialize;

use crate::args::Init;
use crate::exit::Exit;
use crate::failure::{Result, shown};
use crate::opening;
use crate::render::Render;

#[derive(Serialize)]
struct Answer {
    store_id: String,
    directory: String,
    /// The key file that was written; `null` if the key was given.
    key_file: Option<String>,
    slot: &'static str,
}

pub fn run(args: &Init, render: Render) -> Result<Exit> {
    let ready = opening::init(&args.dir, args.place, &args.key, render)?;
    let made = ready.made.as_ref();
    let key_file = made.and_then(|made| made.key_file.as_deref());
    if render.json {
        render.object(&Answer {
            store_id: ready.store_id.to_string(),
            directory: args.dir.to_string_lossy().into_owned(),
            key_file: key_file.map(|path| path.to_string_lossy().into_owned()),
            slot: made.map_or("key", |made| made.slot),
        })?;
    } else {
        render.data(&format!("created journal {} in {}\n", ready.store_id, shown(&args.dir)))?;
        if let Some(path) = key_file {
            render.data(&format!("key file: {}\n", shown(path)))?;
        }
    }
    if let Some(path) = key_file {
        render
            .note(&format!("keep a copy of {} elsewhere: without it nothing can be read again", shown(path)));
    }
    Ok(Exit::Success)
}
