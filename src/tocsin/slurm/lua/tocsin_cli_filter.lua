-- tocsin's advice at the terminal, written by `tocsin slurm install`. Change the settings, not this file.
--
-- It runs in sbatch, on the login node. If the service is alive (its heartbeat is fresh) and standard error is a terminal, it
-- sends the script and prints the answer. It waits only until the deadline, and whatever goes wrong, the job is submitted unchanged.

local SOCKET = "@SOCKET@"
local HEARTBEAT = "@HEARTBEAT@"
local FRESH = 3 -- seconds
local DEADLINE = "@DEADLINE@" -- seconds (policy.advice_milliseconds)
local LONGEST = 8192 -- bytes of advice

local OPTIONS = {
  "account", "array", "begin", "chdir", "constraint", "cpus-per-gpu", "cpus-per-task", "dependency", "exclude", "exclusive", "gpus",
  "gpus-per-node", "gpus-per-task", "gres", "job-name", "licenses", "mem", "mem-per-cpu", "mem-per-gpu", "nodelist", "nodes",
  "ntasks", "ntasks-per-node", "partition", "qos", "reservation", "time", "time-min",
}

local site_pre_submit = slurm_cli_pre_submit

local function alive()
  local file = io.open(HEARTBEAT, "r")
  if not file then return false end
  local beat = tonumber(file:read(20) or "")
  file:close()
  local age = beat and os.time() - beat
  return age ~= nil and age >= -FRESH and age <= FRESH
end

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

local function encoded(text)
  return (text:gsub("[^%w._~-]", function(byte) return string.format("%%%02X", byte:byte()) end))
end

-- What curl sends: the file that sbatch was given, or the command of --wrap. A script on standard input cannot be read twice.
local function body(options)
  local wrap = options["wrap"]
  if type(wrap) == "string" and #wrap < 65536 then return "--data-raw " .. quoted("#!/bin/sh\n" .. wrap .. "\n") end
  local argv = options["argv"]
  local path = type(argv) == "table" and (argv[0] or argv[1])
  local file = type(path) == "string" and io.open(path, "r")
  if not file then return nil end
  file:close()
  return "--data-binary " .. quoted("@" .. path)
end

-- The options that were given, on the line or in directives. Of those that were not, Slurm shows values such as 2982616 days;
-- its JSON leaves them out.
local function query(options)
  local given, set = {}, slurm.json_cli_options(options)
  for _, name in ipairs(OPTIONS) do
    local value = set:find('"' .. name .. '":', 1, true) and options[name]
    if type(value) == "string" and value ~= "" and #value < 1024 then
      value = value:gsub("^gres[:/]", ""):gsub(",gres[:/]", ","):gsub("%?$", "") -- gres:gpu:1, gres/gpu:1 and 0? are Slurm's own forms
      given[#given + 1] = "option=" .. encoded(value == name and "--" .. name or "--" .. name .. "=" .. value)
    end
  end
  return table.concat(given, "&")
end

local function advise(options)
  if options["type"] ~= "sbatch" or not alive() then return end
  local sent = body(options)
  if not sent then return end
  local pipe = io.popen(
    "[ -t 2 ] && exec curl -q -s -f --noproxy '*' -m " .. DEADLINE .. " --unix-socket " .. quoted(SOCKET)
    .. " -H 'Content-Type: text/x-shellscript' -H 'Accept: text/plain' -H 'Expect:' " .. sent
    .. " " .. quoted("http://tocsin/api/v1/advice?" .. query(options)) .. " </dev/null 2>/dev/null", "r")
  if not pipe then return end
  local text = pipe:read(LONGEST) or ""
  pipe:close()
  text = text:gsub("[%z\1-\8\11-\31\127]", ""):gsub("%s+$", "")
  if text ~= "" then io.stderr:write(text, "\n") end
end

function slurm_cli_pre_submit(options, offset)
  local result = slurm.SUCCESS
  if site_pre_submit then result = site_pre_submit(options, offset) end
  if result == slurm.SUCCESS then pcall(advise, options) end
  return result
end
