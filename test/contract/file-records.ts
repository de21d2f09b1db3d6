/** What every store keeps to about files and the runs that need them. */
import { expect, test } from 'vitest'
import { type FileName, MAX_REMOVED, type Store } from '../../src/service/store/contract.js'
import { outputKey } from '../../src/service/stored-run.js'
import { claimRun, newRun, storedOutput } from '../support/runs.js'

const HOUR_MS = 3_600_000
const OUTPUT = storedOutput()
const OUTPUT_FILE: FileName = { kind: 'output', key: outputKey(OUTPUT) }

/** `open` gives an empty store; it is called within each test. */
export function fileRecordsContract(open: () => Store | Promise<Store>): void {
  /** With one worker, `me`. */
  async function createStore() {
    const store = await open()
    await store.renewLease('me')
    const accountId = await store.ensureAccount({ name: 'default', credits: 100, nowMs: 0 })
    const create = (id: string, files: readonly FileName[] = [], price = 0, createdAtMs = 1) =>
      store.addRun(newRun({ id, accountId, price, files, createdAtMs }), ({ balance }) => {
        if (balance < price) throw new Error('insufficient balance')
      })
    /** The image, as the create names it after it has stored the file. */
    const imageOf = (sha256: string, key = `key_${sha256}`): FileName => ({
      kind: 'input',
      key,
      image: { sha256, bytes: 3 },
    })
    /** With a run that took it, and has ended. */
    const storeImage = async (sha256 = 'a1b2', nowMs = 0): Promise<FileName> => {
      const { kind, key } = imageOf(sha256)
      await create(`first_${key}`, [imageOf(sha256)], 0, nowMs)
      await store.failRun(await claimed(`first_${key}`), { code: 'x', message: 'y' })
      return { kind, key }
    }
    const claimed = async (id: string) => {
      await claimRun(store, 'me', { only: [id] })
      return { id, owner: 'me', nowMs: 9 }
    }
    return { store, create, imageOf, storeImage, claimed }
  }

  test('an image is recorded with the first run that takes it, under one key', async () => {
    const { store, create, imageOf } = await createStore()
    const file = imageOf('a1b2')
    expect(await store.findImage('a1b2')).toBeUndefined()
    expect(await create('run', [file])).toEqual({ id: 'run' })
    expect(await store.findImage('a1b2')).toBe(file.key)
    expect(await create('second', [{ kind: 'input', key: file.key }])).toEqual({ id: 'second' })
    expect(await create('third', [{ kind: 'input', key: 'none' }])).toEqual({ refused: 'file_removed' })
  })

  test('a create is refused and records nothing if another create has recorded its image', async () => {
    const { store, create, imageOf } = await createStore()
    await create('run', [imageOf('b')])
    expect(await create('late', [imageOf('a'), imageOf('b', 'other')])).toEqual({ refused: 'file_removed' })
    expect([await store.findImage('a'), await store.findImage('b')]).toEqual([undefined, 'key_b'])
    await expect(create('too dear', [imageOf('c')], 101)).rejects.toThrow('insufficient balance')
    expect(await store.findImage('c')).toBeUndefined()
  })

  test('removes the record of an old file once, and only if no unfinished run needs it', async () => {
    const { store, create, storeImage, claimed } = await createStore()
    const [needed, rendered, free] = [
      await storeImage('needed'),
      await storeImage('rendered'),
      await storeImage('free'),
    ]
    await storeImage('young', 100)
    await create('one', [needed, rendered])
    await create('two', [rendered, free])
    const [one, two] = [await claimed('one'), await claimed('two')]
    await store.failRun(two, { code: 'x', message: 'y' })
    expect(await store.removeOldFiles('output', 100)).toEqual([])
    expect(await store.removeOldFiles('input', 100)).toEqual([free.key])
    expect(await store.removeOldFiles('input', 100)).toEqual([])
    await store.recordCrash(one, { crashes: 3, failure: { code: 'x', message: 'y' } })
    expect(await store.removeOldFiles('input', 100)).toEqual([])
    await store.finishRun(await claimed('one'), [])
    expect((await store.removeOldFiles('input', 100)).toSorted()).toEqual([needed.key, rendered.key])
  })

  test('a create that takes an image renews its age', async () => {
    const { store, create, storeImage, claimed } = await createStore()
    await create('again', [await storeImage()], 0, HOUR_MS)
    await store.finishRun(await claimed('again'), [])
    expect(await store.removeOldFiles('input', HOUR_MS)).toEqual([])
    expect(await store.removeOldFiles('input', HOUR_MS + 1)).toHaveLength(1)
  })

  test('an image whose record was removed is stored again under another key', async () => {
    const { store, create, imageOf, storeImage } = await createStore()
    const file = await storeImage()
    await store.removeOldFiles('input', 100)
    expect(await create('late', [file])).toEqual({ refused: 'file_removed' })
    expect(await store.findImage('a1b2')).toBeUndefined()
    expect(await create('again', [imageOf('a1b2', 'second')])).toEqual({ id: 'again' })
    expect(await store.findImage('a1b2')).toBe('second')
    expect(await store.findUnknownFiles('input', [file.key, 'second'])).toEqual([file.key])
  })

  test('an accepted create keeps its image during concurrent sweeps', async () => {
    const { store, create, storeImage } = await createStore()
    for (let round = 0; round < 20; round++) {
      const file = await storeImage(`image_${round}`)
      const [added, ...removed] = await Promise.all([
        create(`run_${round}`, [file]),
        store.removeOldFiles('input', 100),
        store.removeOldFiles('input', 100),
      ])
      expect('id' in added, `round ${round}`).toBe(!removed.flat().includes(file.key))
    }
  })

  test('outputs that a worker stores are known until the run ends, and then only those of its result', async () => {
    const { store, create, claimed } = await createStore()
    const second = { ...OUTPUT, token: 'second' }
    const unknown = () => store.findUnknownFiles('output', [OUTPUT_FILE.key, outputKey(second)])
    await create('run')
    const held = await claimed('run')
    expect(await store.addOutputFiles({ ...held, owner: 'other' }, [OUTPUT])).toBe(false)
    expect(await store.addOutputFiles(held, [OUTPUT])).toBe(true)
    expect(await store.addOutputFiles(held, [OUTPUT])).toBe(true)
    expect(await unknown()).toEqual([outputKey(second)])
    await store.releaseWorker('me')
    await store.renewLease('me')
    expect(await store.addOutputFiles(await claimed('run'), [second])).toBe(true)
    expect(await unknown()).toEqual([])
    expect(await store.finishRun(held, [second])).toBe(true)
    expect(await unknown()).toEqual([OUTPUT_FILE.key])
    expect(await store.addOutputFiles(held, [OUTPUT])).toBe(false)
    expect(await store.removeOldFiles('output', 9)).toEqual([])
    expect(await store.removeOldFiles('output', 10)).toEqual([outputKey(second)])
  })

  test('outputs of a failed run are unknown', async () => {
    const { store, create, claimed } = await createStore()
    await create('run')
    const held = await claimed('run')
    await store.addOutputFiles(held, [OUTPUT])
    await store.failRun(held, { code: 'x', message: 'y' })
    expect(await store.findUnknownFiles('output', [OUTPUT_FILE.key])).toEqual([OUTPUT_FILE.key])
  })

  test('an output that an unfinished run needs is kept; a create leaves out a removed one', async () => {
    const { store, create, claimed } = await createStore()
    await create('first')
    await store.finishRun(await claimed('first'), [OUTPUT])
    const gone = { kind: 'output', key: 'gone/a.png' } as const
    expect(await create('second', [OUTPUT_FILE, gone])).toEqual({ id: 'second' })
    expect(await store.removeOldFiles('output', 100)).toEqual([])
    await store.finishRun(await claimed('second'), [])
    expect(await store.removeOldFiles('output', 100)).toEqual([OUTPUT_FILE.key])
    expect(await create('third', [OUTPUT_FILE])).toEqual({ id: 'third' })
    expect(await store.findUnknownFiles('output', [OUTPUT_FILE.key])).toEqual([OUTPUT_FILE.key])
  })

  test('any key without a record is unknown', async () => {
    const { store, storeImage } = await createStore()
    const known = await storeImage()
    expect(await store.findUnknownFiles('input', [known.key, 'x', 'ä,{}"\\'])).toEqual(['x', 'ä,{}"\\'])
    expect(await store.findUnknownFiles('output', [known.key])).toEqual([known.key])
  })

  test('removes the records of many old files in groups', async () => {
    const { store, create, claimed } = await createStore()
    await create('run')
    const outputs = Array.from({ length: MAX_REMOVED + 10 }, (_, at) => ({ ...OUTPUT, token: `t${at}` }))
    await store.finishRun(await claimed('run'), outputs)
    expect(await store.removeOldFiles('output', 100)).toHaveLength(MAX_REMOVED)
    expect(await store.removeOldFiles('output', 100)).toHaveLength(10)
  })

  test('a database has an id that does not change', async () => {
    const { store } = await createStore()
    const id = await store.databaseId()
    expect(id).toMatch(/^[0-9a-f-]{32,36}$/)
    expect(await store.databaseId()).toBe(id)
  })
}
