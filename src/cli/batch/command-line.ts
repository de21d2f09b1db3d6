/** The command that continues a batch, as it is to be typed. Pure. */

import { quoteWord } from '../../protocol/shell-word.js'
import type { Globals } from '../flags/globals.js'
import type { BatchFlags } from './options.js'

export interface BatchWords {
  /** A path, or `-`. */
  readonly word: string
  readonly flags: BatchFlags
}

/**
 * Every flag that the same rows need. `--force` and `--resubmit-unconfirmed` are left out: they would send again what
 * this batch has already sent.
 */
export function batchCommandLine(
  { local, profile, baseUrl }: Pick<Globals, 'local' | 'profile' | 'baseUrl'>,
  { word, flags }: BatchWords,
): string {
  const value = (name: string, text: string | undefined) =>
    text === undefined ? [] : [name, quoteWord(text)]
  const flag = (name: string, isGiven: boolean | undefined) => (isGiven === true ? [name] : [])
  return [
    'rushes batch',
    ...flag('--local', local),
    ...value('--profile', profile),
    ...value('--base-url', baseUrl),
    ...(flags.only ?? []).flatMap((glob) => value('--only', glob)),
    ...value('--max-runs', flags.maxRuns),
    ...value('--concurrency', flags.concurrency),
    ...value('--timeout', flags.timeout),
    ...flag('--fail-fast', flags.failFast),
    ...flag('--allow-outside', flags.allowOutside),
    ...flag('--overwrite', flags.overwrite),
    ...flag('--watch', flags.watch),
    ...flag('--yes', flags.yes),
    ...(word.startsWith('-') && word !== '-' ? ['--'] : []),
    word === '-' ? word : quoteWord(word),
  ].join(' ')
}
