/** `--report`: the lines of `--json` in a file, beside the output for people. */
import { appendFileSync, existsSync, statSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { usageError } from '../../errors.js'
import { readBeginning } from '../../host/file-content.js'
import { describeError } from '../../host/system-error.js'
import { printableJson } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import type { Loaded } from './load.js'

/** Empties the file. Throws `usage` when it cannot be written, or is one that the batch needs. */
export function beginReport(path: string | undefined, { manifest, lockPath }: Loaded): void {
  if (path === undefined) return
  const outputs = manifest.entries.map(({ output }) => resolve(manifest.folder, output))
  if ([resolve(manifest.path), resolve(lockPath), ...outputs].includes(resolve(path)))
    throw usageError(`--report: ${path} is a file of the batch.`, 'Give the path of another file.')
  if (existsSync(path) && !isReport(path))
    throw usageError(`--report: ${path} exists, and is not a report.`, 'Give the path of another file.')
  try {
    writeFileSync(path, '')
  } catch (error) {
    throw usageError(`--report: cannot write ${describeError(error, path)}.`)
  }
}

/** Empty, or lines of JSON: an image that the batch reads or has made would be lost. A device is written to as it is. */
function isReport(path: string): boolean {
  if (!statSync(path).isFile()) return true
  const first = readBeginning(path, 2).toString()
  return first === '' || first === '{"'
}

/** Prints a value under `--json`, and appends it to the report: an interrupted batch leaves the rows that have ended. */
export function createJsonOutput({ out }: Context, report: string | undefined): (value: unknown) => void {
  let canWrite = report !== undefined
  return (value) => {
    if (out.mode.json) out.json(value)
    if (report === undefined || !canWrite) return
    try {
      appendFileSync(report, `${printableJson(value)}\n`)
    } catch (error) {
      // Runs are paid for: the batch continues without its report.
      canWrite = false
      out.warn(`--report: cannot write ${describeError(error, report)}.`)
    }
  }
}
