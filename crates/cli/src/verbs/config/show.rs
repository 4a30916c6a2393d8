//! `sealog config show`: what a node would run with, and where each value comes from.

use serde::Serialize;

use crate::args::configuring::Show;
use crate::args::{Listen, LogFormat};
use crate::config::NodeConfig;
use crate::config::origins::{Origin, Setting, of_file};
use crate::exit::Exit;
use crate::failure::{Result, shown};
use crate::places;
use crate::process;
use crate::render::Render;

#[derive(Serialize)]
struct Line<'a> {
    key: &'a str,
    value: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
}

#[derive(Serialize)]
struct Answer<'a> {
    settings: Vec<Line<'a>>,
}

pub fn run(args: &Show, render: Render) -> Result<Exit> {
    let config = NodeConfig::read(args.file())?;
    let mut settings = of_flags(args, render)?;
    settings.extend(of_file(args.file(), &config)?);
    let origin = |setting: &Setting| args.origin.then(|| setting.origin.words());
    if render.json {
        let lines = settings.iter().map(|setting| Line {
            key: &setting.key,
            value: &setting.value,
            origin: origin(setting),
        });
        render.object(&Answer { settings: lines.collect() })?;
        return Ok(Exit::Success);
    }
    let width =
        settings.iter().map(|setting| setting.key.len() + setting.value.len()).max().unwrap_or_default();
    let mut text = String::new();
    for setting in &settings {
        let assignment = format!("{} = {}", setting.key, setting.value);
        match origin(setting) {
            Some(origin) => text += &format!("{assignment:<0$}  # {origin}\n", width + 3),
            None => text += &format!("{assignment}\n"),
        }
    }
    render.data(&text)?;
    Ok(Exit::Success)
}

/// As `--listen` takes it.
fn place_of(listen: &Listen) -> String {
    match listen {
        Listen::Tcp(address) => address.to_string(),
        Listen::Unix(path) => format!("unix:{}", shown(path)),
    }
}

/// What stands on the command line alone.
fn of_flags(args: &Show, render: Render) -> Result<Vec<Setting>> {
    let serve = &args.serve;
    let given = |flag: &str| if process::flag_given(flag) { Origin::Flag } else { Origin::Default };
    let (data_dir, data_origin) = match &serve.data_dir {
        Some(dir) => (dir.clone(), Origin::Flag),
        None => (places::data_dir()?, Origin::Environment(places::data_dir_variable())),
    };
    let row =
        |key: &str, value: String, flag: &str| Setting { key: key.to_owned(), value, origin: given(flag) };
    let mut settings = vec![
        row("listen", place_of(&serve.listen), "--listen"),
        row("allow_remote", serve.allow_remote.to_string(), "--allow-remote"),
        row("read_only", serve.read_only.to_string(), "--read-only"),
        row("grace_ms", serve.grace_ms.to_string(), "--grace-ms"),
    ];
    settings.push(Setting { key: "data_dir".to_owned(), value: shown(&data_dir), origin: data_origin });
    let format = serve.log_format.unwrap_or(LogFormat::beside(render.json));
    let format = match format {
        LogFormat::Text => "text",
        LogFormat::Json => "json",
    };
    settings.push(row("log_format", format.to_owned(), "--log-format"));
    let files = [
        ("token_file", &serve.access.token_file),
        ("tls_cert", &serve.access.tls_cert),
        ("tls_key", &serve.access.tls_key),
    ];
    for (key, _) in files.into_iter().filter(|(_, file)| file.is_some()) {
        let value = "(not shown)".to_owned();
        settings.push(Setting { key: key.to_owned(), value, origin: Origin::Flag });
    }
    if let Some(file) = args.file() {
        settings.push(Setting { key: "config".to_owned(), value: shown(file), origin: Origin::Flag });
    }
    for (key, names) in
        [("allow_host", &serve.access.allow_host), ("allow_origin", &serve.access.allow_origin)]
    {
        let value = |name: &String| format!("{name:?}");
        settings.extend(names.iter().map(|name| Setting {
            key: key.to_owned(),
            value: value(name),
            origin: Origin::Flag,
        }));
    }
    Ok(settings)
}
