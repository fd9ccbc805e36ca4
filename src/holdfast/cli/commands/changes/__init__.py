"""The commands by which a person sees, decides on and takes back what programs do: `changes`, `undo`, `redo`, `review`, `calls`."""
