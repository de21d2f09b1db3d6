/**
 * rushes beside what a user would take instead: `npm run bench:peers`. The same work against the same local service, with its
 * limit of 20 requests in 10 s, through a thin adapter that counts (`peers/adapter.ts`); the scripts of the others are in
 * `peers/scripts`. About six minutes; `npm run bench:peers -- one` measures single runs alone. Prints Markdown tables. Prices
 * and the quality of models are not compared. /
 */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { install, named, PEERS } from './peers/install.js'
import { endGroup, onStage } from './peers/stage.js'
import {
  curl,
  fal,
  patient,
  RUSHES,
  replicate,
  rushes,
  rushesByXargs,
  SCRIPTS,
  type Tool,
} from './peers/tools.js'
import { median, row } from './table.js'

/** What single runs take: not all multiples of somebody's pause between two looks. */
const DURATIONS = [2, 2.6, 3.3]
const MANY = 20
const ROUNDS = 20

const TOOLS: readonly Tool[] = [rushes, curl, replicate, fal]
const installed = mkdtempSync(join(tmpdir(), 'rushes-peers-installed-'))
process.once('exit', () => rmSync(installed, { recursive: true, force: true }))
await install(installed, (Object.keys(PEERS) as (keyof typeof PEERS)[]).map(named))
for (const name of readdirSync(SCRIPTS)) copyFileSync(join(SCRIPTS, name), join(installed, name))

console.log(`One run to its file; ${DURATIONS.join(', ')} s of it are the model's. Medians.\n`)
row('one run', "seconds beyond the model's", 'requests', '429s')
row('---', '--:', '--:', '--:')
/** How many such runs the tool has done before: rushes learns from its journal how long a model takes. */
const EXPERIENCE: readonly (readonly [Tool, number])[] = [
  [rushes, 0],
  [rushes, 3],
  ...TOOLS.slice(1).map((tool) => [tool, 0] as const),
]
for (const [tool, earlier] of EXPERIENCE) {
  const figures = []
  for (const duration of DURATIONS)
    figures.push(
      await onStage(tool, {}, async ({ perform, counts, folder, files }) => {
        const command = tool.command([`a fox, takes ${duration} s`], folder, installed)
        for (let run = 0; run < earlier; run++) {
          await perform(command)
          rmSync(join(folder, 'fox-1.png'))
        }
        const before = { ...counts }
        const { seconds, said } = await perform(command)
        if (files() !== 1) throw new Error(`${tool.name} brought no file: ${said}`)
        return {
          late: seconds - duration,
          requests: counts.requests - before.requests,
          refused: counts.refused - before.refused,
        }
      }),
    )
  row(
    earlier === 0 ? tool.name : `${tool.name}, after ${earlier} such runs`,
    median(figures.map(({ late }) => late)).toFixed(2),
    median(figures.map(({ requests }) => requests)),
    median(figures.map(({ refused }) => refused)),
  )
}
if (process.argv[2] === 'one') process.exit()

console.log(`\n${MANY} runs at once with one key, each takes 2 s. The limit allows no less than 10 s.\n`)
row(`${MANY} runs`, 'seconds', 'runs paid', 'files', 'requests', '429s', 'exit')
row('---', '--:', '--:', '--:', '--:', '--:', '--:')
for (const tool of [rushes, rushesByXargs, curl, replicate, patient(replicate), fal, patient(fal)])
  await onStage(tool, {}, async ({ perform, counts, folder, files }) => {
    const prompts = Array.from({ length: MANY }, (_, at) => `fox number ${at + 1}, takes 2 s`)
    const { seconds, code } = await perform(tool.command(prompts, folder, installed))
    row(tool.name, seconds.toFixed(1), counts.accepted.length, files(), counts.requests, counts.refused, code)
  })

/** Whether the id stands in anything that the process left behind. */
function isLeft(id: string, said: string, ...folders: readonly string[]): boolean {
  const files = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1')),
  )
  return [said, ...files].some((text) => text.includes(id))
}

console.log('\nKilled with -9 while waiting; then what a user can do to have the picture.\n')
row('kill -9', 'the id is left', 'then', 'file', 'runs paid')
row('---', '---', '---', '--:', '--:')
for (const tool of TOOLS)
  await onStage(tool, {}, async ({ perform, counts, folder, home, files }) => {
    const command = tool.command(['a fox, takes 3 s'], folder, installed)
    const { said } = await perform(command, async (child) => {
      while (counts.accepted.length === 0) await sleep(20)
      await sleep(1_200)
      endGroup(child)
    })
    const [id = ''] = counts.accepted
    const isKnown = isLeft(id, said, folder, home)
    await perform(isKnown && tool.pickUp ? tool.pickUp : command)
    const then = isKnown && tool.pickUp ? tool.pickUp.slice(2).join(' ') : 'the same again'
    row(tool.name, isKnown ? 'yes' : 'no', then, files(), counts.accepted.length)
  })

console.log('\nExit codes, and what was paid where the answer to the create was lost once.\n')
row('what goes wrong', ...TOOLS.map(({ name }) => name))
row('---', ...TOOLS.map(() => '---'))
for (const [name, settings, prompt] of [
  ['the run fails', {}, 'this fails, takes 1 s'],
  ['the key is wrong', { key: 'rk_wrong' }, 'a fox, takes 1 s'],
  ['the answer to the create is lost', { losesAnswers: 1 }, 'a fox, takes 1 s'],
] as const) {
  const cells: string[] = []
  for (const tool of TOOLS)
    cells.push(
      await onStage(tool, settings, async ({ perform, counts, folder, files }) => {
        const { code } = await perform(tool.command([prompt], folder, installed))
        const paid = counts.accepted.length
        return `${code}${'losesAnswers' in settings ? `, ${paid} paid, ${files()} file` : ''}`
      }),
    )
  row(name, ...cells)
}

const binary = (name: keyof typeof PEERS, file: string): string => join(installed, 'node_modules', name, file)
const COMMANDS: readonly (readonly [string, readonly string[]])[] = [
  ['node -e 0', ['-e', '0']],
  ...['--version', '--help'].flatMap((flag): (readonly [string, readonly string[]])[] => [
    [`rushes ${flag}`, [RUSHES, flag]],
    [`${named('mmx-cli')} ${flag}`, [binary('mmx-cli', 'dist/mmx.mjs'), flag]],
    [`${named('@wavespeed/cli')} ${flag}`, [binary('@wavespeed/cli', 'dist/cli.js'), flag]],
  ]),
]
const times = new Map<string, number[]>(COMMANDS.map(([name]) => [name, []]))
for (let round = 0; round <= ROUNDS; round++)
  for (const [name, argv] of COMMANDS) {
    const started = performance.now()
    const { status } = spawnSync(process.execPath, argv, { env: { PATH: process.env.PATH, HOME: installed } })
    if (status !== 0) throw new Error(`${name} ended with ${status}`)
    // The first round warms the disk's cache.
    if (round > 0) times.get(name)?.push(performance.now() - started)
  }
console.log(`\nStart-up, medians of ${ROUNDS} alternating.\n`)
row('command', 'median ms', 'bare Node = 1')
row('---', '--:', '--:')
const bare = median(times.get('node -e 0') ?? [])
for (const [name, values] of times) row(name, median(values).toFixed(0), (median(values) / bare).toFixed(2))
