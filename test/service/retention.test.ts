import { mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createLocalFiles } from '../../src/service/files/local-files.js'
import { silentLog } from '../../src/service/log.js'
import { createRetention } from '../../src/service/retention.js'
import { createManualClock } from '../support/clock.js'
import { temporaryFolder } from '../support/service.js'

const RETAIN_MS = 1_000

/** Folders of files by their age, and a retention whose question for the images in use can do something. */
function createFolders(inputs: Record<string, number>, outputs: Record<string, number> = {}) {
  const clock = createManualClock()
  const root = temporaryFolder()
  const folders = { inputs: join(root, 'inputs'), outputs: join(root, 'outputs') }
  const setAge = (path: string, ageMs: number) => {
    const modified = (clock.now() - ageMs) / 1_000
    utimesSync(path, modified, modified)
  }
  for (const folder of Object.values(folders)) mkdirSync(folder)
  for (const [folder, files] of [
    [folders.inputs, inputs],
    [folders.outputs, outputs],
  ] as const)
    for (const [name, ageMs] of Object.entries(files)) {
      writeFileSync(join(folder, name), 'x')
      setAge(join(folder, name), ageMs)
    }
  const retention = (imagesInUse: () => Promise<readonly string[]> = async () => []) =>
    createRetention({
      inputs: createLocalFiles(folders.inputs, clock),
      outputs: createLocalFiles(folders.outputs, clock),
      clock,
      retainMs: RETAIN_MS,
      log: silentLog,
      imagesInUse,
      onError: (error) => {
        throw error
      },
    })
  const left = () => ({ inputs: readdirSync(folders.inputs).sort(), outputs: readdirSync(folders.outputs) })
  return { folders, retention, setAge, left }
}

test('only what is older than the limit is removed, and counted', async () => {
  const { retention, left } = createFolders(
    { old: RETAIN_MS + 1, equal: RETAIN_MS, young: 0 },
    { gone: RETAIN_MS + 1 },
  )
  expect(await retention().sweep()).toEqual({ outputs: 1, images: 1 })
  expect(left()).toEqual({ inputs: ['equal', 'young'], outputs: [] })
})

test('an image that a create has just renewed stays: its age is read again before it is removed', async () => {
  const { folders, retention, setAge, left } = createFolders({ renewed: 5_000, old: 5_000 })
  const sweep = retention(async () => {
    setAge(join(folders.inputs, 'renewed'), 0)
    return []
  }).sweep()
  expect(await sweep).toEqual({ outputs: 0, images: 1 })
  expect(left().inputs).toEqual(['renewed'])
})

test('the store is not asked for images in use while no image is old', async () => {
  let asked = 0
  const { retention } = createFolders({ young: 0 })
  await retention(async () => {
    asked++
    return []
  }).sweep()
  expect(asked).toBe(0)
})

test('a sweep removes nothing more once the service closes', async () => {
  const { retention, left } = createFolders({ one: 5_000, two: 5_000 })
  const closing = retention(async () => {
    void closing.close()
    return []
  })
  await closing.sweep()
  expect(left().inputs).toEqual(['one', 'two'])
})
