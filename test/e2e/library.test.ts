/** The library as another program imports it. */
import { pathToFileURL } from 'node:url'
import { expect, it } from 'vitest'
import { createPlace, DIST, filesBelow, start } from '../support/index.js'

const LIBRARY = new URL('index.js', pathToFileURL(DIST)).href

it('importing the library gives these values, prints nothing, and creates no file, handle or listener', async () => {
  const place = createPlace()
  const { code, stdout, stderr } = await start(
    place,
    [
      '--input-type=module',
      '-e',
      `const listeners = () => process.eventNames().map((name) => [name, process.listenerCount(name)])
    const globals = () => Object.getOwnPropertyNames(globalThis)
    const before = JSON.stringify([listeners(), globals(), Object.keys(process.env)])
    const library = await import(${JSON.stringify(LIBRARY)})
    const after = JSON.stringify([listeners(), globals(), Object.keys(process.env)])
    console.log(JSON.stringify({ same: before === after, names: Object.keys(library), handles: process.getActiveResourcesInfo() }))`,
    ],
    { command: process.execPath, stdin: 'ignore' },
  ).ended
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const { same, names, handles } = JSON.parse(stdout)
  expect(same).toBe(true)
  expect(names.sort().join(' ')).toBe(
    'EXIT HttpFailure KINDS MODEL_INPUTS OWN_CODES PROBLEMS RushesError createClient',
  )
  expect(handles.filter((name: string) => /Timeout|TCP|Immediate/.test(name))).toEqual([])
  expect([...filesBelow(place.home), ...filesBelow(place.folder)]).toEqual([])
})
