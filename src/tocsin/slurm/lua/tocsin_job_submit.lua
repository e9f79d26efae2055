-- tocsin's screening window, written by `tocsin slurm install`. Change the settings, not this file.
--
-- It runs inside slurmctld, under its locks: no file, no socket and no process is touched here. New batch jobs wait for a few
-- seconds, so that a verdict can be given before they start. Whatever goes wrong in it leaves the job as it was.

local WINDOW = @WINDOW@ -- seconds (policy.screening_seconds); 0: off

local site_submit, site_modify = slurm_job_submit, slurm_job_modify

-- An instant as Slurm has it; 0 where none is set.
local function instant(value)
  if type(value) ~= "number" or value >= 4294967280 then return 0 end
  return value
end

local function screen(job)
  local batch = type(job.script) == "string" and job.script ~= ""
  if WINDOW <= 0 or not batch or job.immediate == 1 or job.immediate == true then return end
  local earliest = os.time() + WINDOW
  if instant(job.begin_time) < earliest then job.begin_time = earliest end
end

-- An owner cannot leave the window by a new begin time; operators can.
local function keep(job, record, uid)
  local wanted = instant(job.begin_time)
  if WINDOW <= 0 or wanted == 0 or uid == 0 or uid ~= record.user_id then return end
  local earliest = record.submit_time + WINDOW
  if os.time() < earliest and wanted < earliest then job.begin_time = earliest end
end

function slurm_job_submit(job, partitions, uid)
  local result = slurm.SUCCESS
  if site_submit then result = site_submit(job, partitions, uid) end
  if result == slurm.SUCCESS then pcall(screen, job) end
  return result
end

function slurm_job_modify(job, record, partitions, uid)
  local result = slurm.SUCCESS
  if site_modify then result = site_modify(job, record, partitions, uid) end
  if result == slurm.SUCCESS then pcall(keep, job, record, uid) end
  return result
end
