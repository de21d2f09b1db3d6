/** The properties of manifests with many more inputs than in the tests. */
import { expect, it } from 'vitest'
import { acceptsMatrices, readsAnyMatrix, readsAnyText } from '../batch/manifest-properties.js'

it('a manifest never ends in anything but rows or problems, whatever the text', () => readsAnyText(5_000))
it('a matrix never ends in anything but rows or problems, wherever they are', () => readsAnyMatrix(5_000))
it('the schema accepts each matrix that the validator accepts', async () => {
  expect(await acceptsMatrices(5_000)).toBeGreaterThan(250)
})
