/**
 * rushes beside what a user would take instead: `npm run bench -- peers`. The same work against the same local service, with its
 * limit of 20 requests in 10 s, through a thin adapter that counts (`peers/adapter.ts`); beside it are the scripts of the others.
 * About six minutes; `npm run bench -- peers one` measures single runs alone. Prints Markdown tables. Prices and the quality of
 * models are not compared.
 *
 * Before: `npm install --prefix bench/peers --no-package-lock --ignore-scripts`.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { endGroup, onStage } from './peers/stage.js'
import { curl, fal, patient, replicate, rushes, rushesByXargs, type Tool } from './peers/tools.js'
import { median, row } from './table.js'

/** What single runs take: not all multiples of somebody's pause between two looks. */
const DURATIONS = [2, 2.6, 3.3]
const MANY = 20

const TOOLS: readonly Tool[] = [rushes, curl, replicate, fal]

console.log(`One run to its file; ${DURATIONS.join(', ')} s of it are the model's. Medians.\n`)
row('one run', "seconds beyond the model's", 'requests', '429s')
row('---', '--:', '--:', '--:')
for (const tool of TOOLS) {
  const figures = []
  for (const duration of DURATIONS)
    figures.push(
      await onStage(tool, {}, async ({ perform, counts, folder, files }) => {
        const { seconds, said } = await perform(tool.command([`a fox, takes ${duration} s`], folder))
        if (files() !== 1) throw new Error(`${tool.name} brought no file: ${said}`)
        return { late: seconds - duration, ...counts }
      }),
    )
  row(
    tool.name,
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
    const { seconds, code } = await perform(tool.command(prompts, folder))
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
    const command = tool.command(['a fox, takes 3 s'], folder)
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
        const { code } = await perform(tool.command([prompt], folder))
        const paid = counts.accepted.length
        return `${code}${'losesAnswers' in settings ? `, ${paid} paid, ${files()} file` : ''}`
      }),
    )
  row(name, ...cells)
}
