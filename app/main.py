from steinlab.shell import serve

serve()
