/** What a user would take for the same work. Each command makes `fox-1.png`, `fox-2.png` and so on in its working folder. */
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

export const RUSHES = resolve('bin/rushes.cjs')
const SCRIPTS = resolve('bench/peers')

export interface Tool {
  readonly name: string
  /** Where its interface begins on the adapter. */
  readonly path: string
  /** The command for runs of these prompts, all of them at once; it may write files into its working folder first. */
  command(prompts: readonly string[], folder: string): readonly string[]
  /** What a user does to have the result of a run whose process was killed. */
  readonly pickUp?: readonly string[]
  /** Further settings of its script. */
  readonly env?: Readonly<Record<string, string>>
}

/** As many processes as prompts, the usual way of a shell. */
const eachByXargs = (command: string, folder: string, prompts: readonly string[]): readonly string[] => {
  const list = join(folder, 'prompts.txt')
  writeFileSync(list, prompts.map((prompt, at) => `${prompt}\nfox-${at + 1}.png\n`).join(''))
  return ['xargs', '-a', list, '-d', '\\n', '-n', '2', '-P', String(prompts.length), 'sh', '-c', command]
}

export const rushes: Tool = {
  name: 'rushes',
  path: '',
  command(prompts, folder) {
    const [first = ''] = prompts
    if (prompts.length === 1) return [process.execPath, RUSHES, 'run', 'image', first, '-o', 'fox-1.png']
    const rows = prompts.map((prompt, at) => ({ kind: 'image', prompt, output: `fox-${at + 1}.png` }))
    writeFileSync(join(folder, 'shots.jsonl'), rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
    return [process.execPath, RUSHES, 'batch', 'shots.jsonl']
  },
  pickUp: [process.execPath, RUSHES, 'wait', '--last', '-o', 'fox-1.png'],
}

/** Not the way to do it with rushes, but the way that is the same for it and for curl. */
export const rushesByXargs: Tool = {
  name: 'rushes, a process each',
  path: '',
  command: (prompts, folder) =>
    eachByXargs(`exec "${process.execPath}" "${RUSHES}" run image "$0" -o "$1"`, folder, prompts),
}

export const curl: Tool = {
  name: 'curl and jq',
  path: '',
  command: (prompts, folder) =>
    prompts.length === 1
      ? ['bash', join(SCRIPTS, 'one.sh'), ...prompts, 'fox-1.png']
      : eachByXargs(`exec bash "${join(SCRIPTS, 'one.sh')}" "$0" "$1"`, folder, prompts),
}

export const replicate: Tool = {
  name: 'replicate 1.4.0',
  path: '/v1',
  command: (prompts) => [process.execPath, join(SCRIPTS, 'replicate.mjs'), ...prompts],
}

export const fal: Tool = {
  name: '@fal-ai/client 1.10.1',
  path: '/fal',
  command: (prompts) => [process.execPath, join(SCRIPTS, 'fal.mjs'), ...prompts],
}

/** Set by somebody who knows the limit: a library's run of 2 s costs three or four requests, and two a second are allowed. */
export const patient = (tool: Tool): Tool => ({
  ...tool,
  name: `${tool.name}, two at once, looks every 3.5 s`,
  env: { AT_ONCE: '2', POLL_MS: '3500' },
})
