/** `--local` in process: the command line and its own service, with an engine that draws nothing. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runCli } from '../support/cli.js'
import { createInstantEngine, ONE_PIXEL_PNG } from '../support/engines.js'
import { temporaryFolder } from '../support/service.js'

it('creates, renders and downloads a run, and lists it with the address "local"', async () => {
  const home = temporaryFolder()
  const engine = createInstantEngine()
  const made = await runCli(['run', 'image', '--local', 'a fox', '-o', join(home, 'fox.png'), '--json'], {
    home,
    engine,
  })
  expect(made).toMatchObject({ code: 0, stderr: '' })
  expect(engine.jobs.map(({ input }) => input.prompt)).toEqual(['a fox'])
  expect(readFileSync(join(home, 'fox.png'))).toEqual(ONE_PIXEL_PNG)
  const { id } = JSON.parse(made.stdout)

  const listed = await runCli(['list', '--json'], { home })
  expect(JSON.parse(listed.stdout)).toMatchObject({ id, status: 'succeeded', address: 'local' })
})

it('does not render a run of --no-wait, until a command waits for it', async () => {
  const home = temporaryFolder()
  const engine = createInstantEngine()
  const { stdout } = await runCli(['run', 'image', '--local', 'a hen', '--no-wait'], { home, engine })
  expect(engine.jobs).toEqual([])
  const id = stdout.trim()
  expect((await runCli(['status', id], { home, engine })).stdout).toBe(`${id}\tqueued\t\n`)

  expect(await runCli(['wait', id, '-o', join(home, 'hen.png')], { home, engine })).toMatchObject({ code: 0 })
  expect(engine.jobs).toHaveLength(1)
})
