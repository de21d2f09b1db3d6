/** Factor of the number of random cases and of the seconds of a proof. `npm run proof` sets 30. */
export const PROOF = Number(process.env.PROOF ?? 1)
