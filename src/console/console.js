/**
 * What the pages cannot do without a script and htmx does not do: times of the clock here, rest in a hidden tab,
 * names of files.
 */
/** A filter of htmx (`every 2s [!document.hidden]`) would need eval. */
document.addEventListener('htmx:before:request', (event) => {
  if (document.hidden && event.detail.ctx.request.method === 'GET') event.preventDefault()
})

/** Times as on the clock of the user. They are in UTC where scripts are off. */
function showTimes() {
  for (const time of document.querySelectorAll('time'))
    time.textContent = new Date(time.dateTime).toLocaleString('sv')
}
showTimes()
document.addEventListener('htmx:after:swap', showTimes)

/** The names of the chosen files, which the transparent field does not show. */
document.addEventListener('change', ({ target }) => {
  if (target.type !== 'file') return
  target.closest('.drop').querySelector('p').textContent =
    [...target.files].map(({ name }) => name).join(', ') || 'Choose images or drop them here'
})
