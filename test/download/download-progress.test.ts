import { expect, it } from 'vitest'
import { createProgress, type Progress } from '../../src/download/download-progress.js'

it('adds up the files, and takes back what a broken try had brought', () => {
  const told: Progress[] = []
  const createMeter = createProgress(2, (progress) => told.push(progress))
  const [one, two] = [createMeter(), createMeter()]
  const last = () => told.at(-1)

  one.restart()
  expect(told).toEqual([])
  one.expect(10)
  one.receive(4)
  expect(last()).toEqual({ receivedBytes: 4, totalBytes: undefined, filesDone: 0, files: 2 })
  two.expect(20)
  expect(last()).toMatchObject({ receivedBytes: 4, totalBytes: 30 })
  one.restart()
  expect(last()).toMatchObject({ receivedBytes: 0, totalBytes: 30 })
  one.expect(undefined)
  expect(last()).toMatchObject({ totalBytes: undefined })
  one.receive(12)
  one.end()
  expect(last()).toEqual({ receivedBytes: 12, totalBytes: 32, filesDone: 1, files: 2 })
  two.receive(5)
  two.end()
  expect(last()).toEqual({ receivedBytes: 17, totalBytes: 17, filesDone: 2, files: 2 })
})
