/** The prompt, from one of its sources. It stays text, whatever it looks like. */

import { usageError } from '../../errors.js'
import { describeError, isSystemError } from '../../host/system-error.js'
import type { Stdin } from '../process/io.js'
import { decodeUtf8, readPath, readStdin } from '../process/stdin.js'

export interface PromptOptions {
  readonly words: readonly string[]
  readonly prompt?: string | undefined
  readonly promptFile?: string | undefined
}

interface Source {
  readonly name: string
  readonly kind: 'text' | 'file'
  readonly value: string
}

const sourcesOf = ({ words, prompt, promptFile }: PromptOptions): readonly Source[] => [
  ...(words.length > 0 ? [{ name: 'the arguments', kind: 'text', value: words.join(' ') } as const] : []),
  ...(prompt !== undefined ? [{ name: '--prompt', kind: 'text', value: prompt } as const] : []),
  ...(promptFile !== undefined ? [{ name: '--prompt-file', kind: 'file', value: promptFile } as const] : []),
]

/** The source of the prompt, if any. Throws `usage` for two. */
function sourceOf(options: PromptOptions): Source | undefined {
  const sources = sourcesOf(options)
  if (sources.length > 1) {
    const names = sources.map(({ name }) => name).join(' and ')
    throw usageError(`More than one prompt was given: ${names}.`, 'Use only one of them.')
  }
  return sources[0]
}

/** How `checkStdinUsers` names the prompt, when it reads standard input. */
export const promptReadsStdin = (options: PromptOptions): string | undefined =>
  sourceOf(options)?.value === '-' ? 'The prompt' : undefined

const withoutFinalLineEnd = (text: string): string => text.replace(/\r?\n$/, '')

/** Undefined when no source is given. Throws `usage` when it is blank or cannot be read. */
export async function readPrompt(
  options: PromptOptions,
  stdin: Stdin,
  signal: AbortSignal,
): Promise<string | undefined> {
  const source = sourceOf(options)
  if (source === undefined) return undefined
  const text = await readSource(source, stdin, signal)
  if (text.trim() === '')
    throw usageError('The prompt is empty.', 'Example: `rushes run image "a red fox in fresh snow"`')
  return text
}

async function readSource({ kind, value }: Source, stdin: Stdin, signal: AbortSignal): Promise<string> {
  if (value !== '-' && kind === 'text') return value
  const bytes = value === '-' ? await readStdin(stdin, 'the prompt', signal) : await readFile(value, signal)
  const text = decodeUtf8(bytes)
  if (text === undefined)
    throw usageError(`${value === '-' ? 'standard input' : value}: the prompt is not UTF-8 text.`)
  return withoutFinalLineEnd(text)
}

async function readFile(path: string, signal: AbortSignal): Promise<Buffer> {
  try {
    return await readPath(path, signal)
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw usageError(`${describeError(error, path)}.`, 'Give the path of a text file: --prompt-file <path>.')
  }
}
