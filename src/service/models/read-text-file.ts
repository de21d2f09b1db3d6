/** Reads a small text file. */
import { readFileSync, statSync } from 'node:fs'
import { describeReason } from '../../host/system-error.js'

/** Returns the text, or undefined after the report of why it cannot be read. */
export function readTextFile(
  path: string,
  maxMib: number,
  report: (problem: string) => void,
): string | undefined {
  try {
    const found = statSync(path)
    // A pipe or a device could be read without an end.
    if (!found.isFile()) report('is not a regular file')
    else if (found.size > maxMib * 1_048_576) report(`is larger than ${maxMib} MiB`)
    else return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path))
  } catch (error) {
    report(error instanceof TypeError ? 'is not UTF-8 text' : `cannot be read: ${describeReason(error)}`)
  }
  return undefined
}
